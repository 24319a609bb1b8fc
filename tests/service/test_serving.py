"""``graphfcl serve`` as a user starts it: the address, the token, the end, and what it refuses."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from graphfcl import InputError
from graphfcl.service.serving import Address, token_of
from tests.cli.command import assert_one_sentence, graphfcl_inside
from tests.production.models import fitted
from tests.service.servers import Client


def test_serve_and_stop_in_the_middle_of_a_change(folder: Path, free: list[str]) -> None:
    command = [sys.executable, "-m", "graphfcl", "serve", "--model", str(folder), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        line = process.stdout.readline()
        match = re.fullmatch(r"Serving .* at http://127\.0\.0\.1:(\d+)/#token=([\w-]{43})\n", line)
        assert match, line
        client = Client(int(match.group(1)), process.pid, match.group(2))
        assert Client(client.port, token=None).teach("x", free[:1]).status == 401
        answers: list[int] = []
        changing = threading.Thread(target=lambda: answers.append(client.teach("x", free[:1]).json["version"]))
        changing.start()
        while b"waiting_changes 1" not in client.get("/metrics").content and changing.is_alive():
            pass
        process.send_signal(signal.SIGTERM)
        changing.join()
        assert process.wait(30) in (0, -signal.SIGTERM)
        assert answers == [2], "the change in flight was finished and answered"
        assert process.stderr.read() == ""
    assert (folder / "cache.sqlite").exists()


def test_it_stops_without_an_error_while_it_computes(tmp_path: Path) -> None:
    """Disputed labels take fits, whose libraries cannot be interrupted."""
    fitted("anchor").save(tmp_path / "model")
    command = [sys.executable, "-m", "graphfcl", "serve", "--model", str(tmp_path / "model"), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        match = re.search(r":(\d+)/#token=(\S+)", process.stdout.readline())
        assert match
        client = Client(int(match.group(1)), process.pid, match.group(2))
        assert client.get("/v1/label-issues").json["status"] == "computing"
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert process.stderr.read() == ""


def test_what_it_refuses(folder: Path, tmp_path: Path) -> None:
    assert_one_sentence(graphfcl_inside("serve", "--model", tmp_path / "nothing"), "nothing", "graphfcl fit")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert_one_sentence(graphfcl_inside("serve", "--model", folder, "--port", port), str(port), "--port")
        for name in ("https://a.example", "a.example:80", "a.example/", "*.example", "[::1]", "", "a b", "a@b"):
            refused = graphfcl_inside("serve", "--model", folder, "--port", port, "--allow-host", name)
            assert_one_sentence(refused, "--allow-host")
    assert_one_sentence(graphfcl_inside("serve", "--model", folder, "--host", "192.0.2.1"), "192.0.2.1", "--host")
    for name in ("a.example", "A-1.example.", "localhost", "::1", "192.0.2.7"):
        assert name in Address(allowed=(name,)).names()
    (folder / "model.sqlite").write_text("{}")
    assert_one_sentence(graphfcl_inside("serve", "--model", folder, "--port", 0), "model.sqlite", "damaged")


@pytest.mark.parametrize("content", ["", "short", "a b" * 20, "ä" * 20, "x" * 5000])
def test_a_token_that_is_none(folder: Path, tmp_path: Path, content: str) -> None:
    file = tmp_path / "token"
    file.write_text(content)
    file.chmod(0o600)
    assert_one_sentence(graphfcl_inside("serve", "--model", folder, "--port", 0, "--token-file", file), "token")


def test_a_token_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    token = token_of(file)
    assert len(token) >= 43
    assert file.stat().st_mode & 0o777 == 0o600
    assert token_of(file) == token
    assert token_of(tmp_path / "other") != token
    for mode in (0o640, 0o604, 0o620):
        file.chmod(mode)
        with pytest.raises(InputError, match="chmod 600"):
            token_of(file)
    with pytest.raises(InputError, match=r"is not a regular file|cannot be read"):
        token_of(tmp_path)
    with pytest.raises(InputError, match="cannot be read or created"):
        token_of(tmp_path / "missing" / "token")


def test_without_the_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules["graphfcl.cli.model"]
    monkeypatch.setattr(module, "find_spec", lambda name: None if name == "uvicorn" else name)
    assert_one_sentence(graphfcl_inside("serve", "--model", folder), "uvicorn", "graphfcl[serve]")


def test_nobody_else_imports_the_service() -> None:
    """Neither the package nor the command line waits for FastAPI."""
    script = "import sys, graphfcl.production, graphfcl.cli; assert not {'fastapi', 'uvicorn'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True, env=os.environ.copy())


def test_answers_do_not_wait_to_be_sent_together() -> None:
    """asyncio sends small packets at once only on sockets that say TCP; so do those that are accepted."""
    with Address("127.0.0.1", 0).listen() as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.proto == socket.IPPROTO_TCP
