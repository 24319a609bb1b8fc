"""Models on graph folders whose phases run on a real Ray of two workers: the same bytes as in one process."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphfcl import GraphFolder
from graphfcl.graph.folder import write_folder
from graphfcl.runtime.files import sha256_of
from graphfcl.runtime.tasks.ray_backend import RayEngine
from tests.cli.command import graphfcl_inside
from tests.methods.blocks.samples import random_graph
from tests.production.crafting import stored_chunks
from tests.runtime.tasks.conftest import on_ray

__all__ = ["on_ray"]  # a fixture
QUICK = ["--set", "pretraining.epochs=1", "--set", "whole_up_to=100", "--set", "head_steps=5"]


def content(root: Path) -> dict[str, str]:
    """Digests of what a model and its work folder hold, without where they are and how they were computed."""
    files = [path for path in (root / "work").rglob("*") if path.is_file()]
    checksums = {str(path.relative_to(root)): sha256_of(path.read_bytes()) for path in [*files, root / "all.csv"]}
    return checksums | dict.fromkeys(stored_chunks(root / "model"), "")


@pytest.mark.long
@pytest.mark.usefixtures("on_ray")
@pytest.mark.parametrize(("method", "quick"), [("sgc-ridge", []), ("anchor", QUICK)])
def test_two_workers_of_ray_change_no_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, quick: list[str]
) -> None:
    submit, orders = RayEngine.submit, [0]

    def counted(self: RayEngine, order: Any) -> Any:
        orders[0] += 1
        return submit(self, order)

    monkeypatch.setattr(RayEngine, "submit", counted)
    contents = {}
    for backend in ("local", "ray"):
        root = tmp_path / backend
        write_folder(random_graph(300), root / "graph")
        folder = GraphFolder.open(root / "graph")
        hidden = folder.ids(np.flatnonzero(folder.labels == 8)[:5]).tolist()
        (root / "supports.csv").write_text("node,class\n" + "".join(f"{node},new\n" for node in hidden))
        model = ("--model", root / "model", "--backend", backend, "--workers", "1" if backend == "local" else "2")
        # Each worker is taken to be as large as this process, which has all of the tests in it.
        fit = ("fit", *model, "--graph", root / "graph", "--work", root / "work", "--memory", "8GB", *quick)
        before = orders[0]
        for words in (
            (*fit, "--method", method, "--hide-classes", "class 8"),
            ("learn", *model, root / "supports.csv"),
            ("predict", *model, "--out", root / "all.csv"),
        ):
            done = graphfcl_inside(*words)
            assert done.code == 0, done.err
            if words[0] != "learn":  # which makes no pass
                assert (orders[0] > before) == (backend == "ray"), words[0]
            before = orders[0]
        contents[backend] = content(root)
        shutil.rmtree(root / "graph")
    assert contents["ray"] == contents["local"]
