"""A version of another process is damaged: readers go on, changes are refused, and the log has one line."""

import logging
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphfcl import GraphClassifier, ModelFolder
from graphfcl.service.metrics import Metrics
from graphfcl.service.security import Limits
from graphfcl.service.writer import Writer
from tests.cli.command import graphfcl_inside
from tests.production.crafting import CraftedFolder, opened
from tests.service.servers import TOKEN, Client

POLLS = 5  # looks of the service at its folder that the log must outlast


@contextmanager
def logged_server(folder: Path, log: Path) -> Iterator[Client]:
    """A server whose log goes to a file."""
    token = log.with_name("token")
    token.write_text(TOKEN)
    token.chmod(0o600)
    serve = [sys.executable, "-m", "graphfcl", "serve", "--model", folder, "--port", "0", "--token-file", token]
    with open(log, "wb") as file:
        process = subprocess.Popen(list(map(str, serve)), stdout=file, stderr=file)
    try:
        until = time.monotonic() + 120
        while not (port := re.search(r"127\.0\.0\.1:(\d+)/", log.read_text())):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until
            time.sleep(0.1)
        client = Client(int(port.group(1)), process.pid)
        wait_until(lambda: _answers(client))
        yield client
    finally:
        process.kill()
        process.wait()


def _answers(client: Client) -> bool:
    try:
        return client.get("/healthz").status == 200
    except OSError:
        return False


def wait_until(holds: Callable[[], bool], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.1)


def far_label(folder: CraftedFolder) -> None:
    def change(nodes: Any) -> Any:
        nodes[0] = 10**6
        return nodes

    folder.change_array("label_store", "nodes", change)


def learner_without_tensors(folder: CraftedFolder) -> None:
    folder.change_part("network", lambda part: part.update(arrays={}))


def leave_version(folder: Path, aside: Path, harm: Callable[[CraftedFolder], None], node: str) -> None:
    """Write a version aside, damage it, and copy it into the folder."""
    shutil.copytree(folder, aside)
    with ModelFolder(aside).editing(write_cache=False) as model:
        model.learn({"foreign": [node]})
    crafted = CraftedFolder(aside, aside.with_name("crafted"))
    harm(crafted)
    with opened(folder / "model.sqlite") as connection:
        connection.execute("ATTACH ? AS crafted", (str(crafted.path),))
        for table in ("chunk", "document"):
            connection.execute(f"INSERT OR IGNORE INTO {table} SELECT * FROM crafted.{table}")
        connection.commit()
        connection.execute("DETACH crafted")


@pytest.mark.parametrize("harm", [far_label, pytest.param(learner_without_tensors, marks=pytest.mark.long)])
def test_a_damaged_version_of_another_process(
    folder: Path, tmp_path: Path, free: list[str], harm: Callable[[CraftedFolder], None]
) -> None:
    log = tmp_path / "log"
    with logged_server(folder, log) as server:
        before = server.node("n20").json
        leave_version(folder, tmp_path / "aside", harm, free[0])
        wait_until(lambda: server.get("/readyz").status == 503)
        for answer in (server.get("/readyz"), server.get("/v2/health/ready"), server.teach("x", free[1:2])):
            assert answer.status == 503
            assert answer.headers["content-type"] == "application/problem+json"
            assert "version 2 is damaged" in answer.json["detail"]
            assert "Reads continue from version 1" in answer.json["detail"]
            assert answer.json["version"] == 1
        assert server.node("n20").json == before
        assert "version 2 is damaged" in server.get("/v1/model").json["warning"]
        time.sleep(0.5 * POLLS)
        server.teach("x", free[1:2])
        assert log.read_text().count("version 2 is damaged") == 1, log.read_text()
        assert graphfcl_inside("rollback", "--model", folder, 1).code == 0
        server.wait_for_version(3, 60)
        assert server.get("/readyz").status == 200
        assert server.teach("x", free[1:2]).json["version"] == 4


def test_an_error_that_was_not_foreseen_is_logged_once(
    folder: Path, free: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    writer = Writer(folder, Metrics(), Limits())
    writer.start()
    with ModelFolder(folder).editing(write_cache=False) as model:
        model.learn({"foreign": [free[0]]})

    def fail(*_: object, **__: object) -> None:
        raise np.exceptions.AxisError("no such axis")

    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING, "graphfcl.service"):
        patch.setattr(GraphClassifier, "from_version", fail)
        for _ in range(POLLS):
            assert not writer.follow()
    assert len(caplog.records) == 1
    assert "version 2 is damaged, it cannot be loaded (AxisError: no such axis)" in caplog.text
    assert writer.current.version == 1
    assert writer.follow(), "what can be loaded later is loaded"
    assert writer.trouble is None
