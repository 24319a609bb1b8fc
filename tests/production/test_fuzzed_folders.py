"""Folders and files that somebody else wrote: whatever is changed in them, only errors of our own are raised.

``FUZZ_MORE=10 FUZZ_SEED=7`` tries ten times as many cases, and others.
"""

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphfcl import (
    Graph,
    GraphClassifier,
    GraphFolder,
    InputError,
    ModelFolder,
    Protocol,
    load_dataset,
    load_stream,
    make_stream,
    save_stream,
)
from graphfcl.graph.folder import write_folder
from graphfcl.service.metrics import Metrics
from graphfcl.service.security import Limits
from graphfcl.service.writer import Writer
from tests.fuzzing.formats import CopiedFormat, Format, GraphCopy, ModelFormat, Operations, StreamCopy
from tests.fuzzing.fuzzer import holes
from tests.production.models import quick

NAME = "synthetic:nodes=80,edges=200,classes=5,features=24,signal=1.0"
SEED = int(os.environ.get("FUZZ_SEED", "0"))
MORE = float(os.environ.get("FUZZ_MORE", "1"))  # times as many cases
PIECE = 50  # cases of one test


@pytest.fixture(scope="session")
def tiny() -> Graph:
    return load_dataset(NAME)[0]


def members(graph: Graph) -> list[Any]:
    """The nodes of the last class, which a model is taught later."""
    return graph.node_ids[graph.labels == len(graph.class_names) - 1].tolist()


@pytest.fixture(scope="session")
def models(tiny: Graph, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Folders of a fitted model with two versions, by method."""
    made: dict[str, Path] = {}

    def make(method: str) -> Path:
        if method not in made:
            folder = tmp_path_factory.mktemp("fuzzed") / method
            model = GraphClassifier(method, quick(method)).fit(tiny, hide_classes=[tiny.class_names[-1]])
            model.save(folder)
            model.learn({"new": members(tiny)[:4]}, by="somebody").save(folder)
            model.wait()
            made[method] = folder
        return made[method]

    return make


def of_model(path: Path, nodes: list[Any]) -> Operations:
    """What people do with a model folder."""
    folder = ModelFolder(path)
    reader = cache(lambda: GraphClassifier.load(path))

    def serve() -> None:
        try:
            Writer(path, Metrics(), Limits()).start()
        except InputError as error:
            if "cannot be loaded" in str(error):
                raise AssertionError("an error that is not ours is behind it") from error
            raise

    def predict() -> None:
        model = GraphClassifier.load(path)
        found = model.prediction_columns()
        model.wait()
        assert len(found["class"]) == len(model.node_ids_)
        assert np.isfinite(found["probability"]).all()
        assert np.isfinite(found["unknown_score"]).all()

    def learn() -> None:
        with folder.editing(wait=0, write_cache=False) as model:
            model.learn({"more": nodes[4:7]})

    return {
        "predict": predict,
        "predict one": lambda: GraphClassifier.load(path).prediction_columns(nodes[:1]),
        "history": folder.history,
        "info": lambda: reader().info(),
        "labels": lambda: reader().label_columns(),
        "explain": lambda: reader().explain(nodes[0]),
        "serve": serve,
        "learn": learn,
        "rollback to it": lambda: folder.rollback(2, wait=0),
        "rollback": lambda: folder.rollback(1, wait=0),
        "prune": lambda: folder.prune(1, wait=0),
    }


def share(count: int, few: int, some: int) -> list[Any]:
    """Pieces of so many cases: `make test` tries the first ``few``, CI the first ``some``, `make test-all` all."""
    count, some = int(count * MORE), int(some * MORE)
    pieces = [range(start, min(start + PIECE, count)) for start in range(0, count, PIECE)]
    first = [range(min(few, count))] if few else []
    marks = {piece: [pytest.mark.long, *([pytest.mark.soak] if piece.start >= some else [])] for piece in pieces}
    return [
        *(pytest.param(piece, id="few") for piece in first),
        *(pytest.param(piece, id=f"{piece.start}", marks=marks[piece]) for piece in pieces),
    ]


def assert_none(format: Format, place: Path, cases: range) -> None:
    found = [str(hole) for hole in holes(format, place, cases, SEED)]
    assert not found, f"{len(found)} errors that are not ours:\n\n" + "\n\n".join(found[:5])


@pytest.mark.parametrize("cases", share(400, 20, 150))
def test_model_folders_of_anchor(models: Any, tiny: Graph, tmp_path: Path, cases: range) -> None:
    assert_none(ModelFormat(models("anchor"), lambda path: of_model(path, members(tiny))), tmp_path, cases)


@pytest.mark.parametrize("cases", share(300, 0, 100))
def test_model_folders_of_sgc_ridge(models: Any, tiny: Graph, tmp_path: Path, cases: range) -> None:
    assert_none(ModelFormat(models("sgc-ridge"), lambda path: of_model(path, members(tiny))), tmp_path, cases)


@pytest.mark.parametrize("cases", share(700, 25, 700))
def test_graph_folders(tiny: Graph, tmp_path: Path, cases: range) -> None:
    def operations(path: Path) -> Operations:
        def read() -> None:
            folder = GraphFolder.open(path)
            folder.nodes_of(tiny.node_ids[:3])
            for start, stop in folder.neighbour_ranges(100):
                folder.neighbours(start, stop)
            folder.degrees()
            assert folder.same_class_share is None or folder.same_class_share >= 0

        return {
            "open": lambda: GraphFolder.open(path).verify(),
            "load": lambda: GraphFolder.open(path).graph(),
            "read": read,
        }

    write_folder(tiny, tmp_path / "graph")
    assert_none(CopiedFormat(tmp_path / "graph", GraphCopy, operations), tmp_path, cases)


@pytest.mark.parametrize("cases", share(600, 25, 600))
def test_saved_streams(tiny: Graph, tmp_path: Path, cases: range) -> None:
    save_stream(make_stream(tiny, Protocol(base=2, pseudo_novel=1, way=1, shot=3), seed=0), tmp_path / "stream.json")
    stored = CopiedFormat(tmp_path / "stream.json", StreamCopy, lambda path: {"load": lambda: load_stream(path, tiny)})
    assert_none(stored, tmp_path, cases)
