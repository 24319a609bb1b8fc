"""A graph folder in memory or on the disk: which was taken is said, and what is of no use there is refused."""

from pathlib import Path

import pytest

from graphfcl import InputError
from graphfcl.graph.folder import write_folder
from tests.cli.command import Result, graphfcl_inside
from tests.methods.blocks.samples import random_graph

SMALL = "synthetic:nodes=200,edges=400,classes=9,features=20"
RUN = ("--method", "sgc-ridge", "--base", "3", "--pseudo-novel", "3", "--way", "3", "--sessions", "1")
FIT = ("--method", "sgc-ridge")


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("graphs") / "graph"
    write_folder(random_graph(300), path)
    return path


@pytest.mark.parametrize("folder", [True, False])
@pytest.mark.parametrize("verb", ["run", "fit"])
def test_an_engine_is_refused_where_no_tasks_run(graph: Path, tmp_path: Path, verb: str, folder: bool) -> None:
    words: tuple[object, ...] = ("fit", *FIT, "--model", tmp_path / "m")
    if verb == "run":
        words = ("run", *RUN, "--out", tmp_path / "run")
    words = (*words, "--graph", graph if folder else SMALL)
    fix = "give --work, or leave it out" if folder else "make one with `data import`, or leave it out"
    cases = {
        ("--backend", "nonsense"): "there is no backend 'nonsense'",
        ("--backend", "ray", "--ray-address", "127.0.0.1:1"): fix,
        ("--backend", "submitit", "--submitit-option", "cluster=local"): fix,
        ("--ray-address", "127.0.0.1:1"): "" if folder else fix,
        ("--submitit-option", "cluster=local"): "" if folder else fix,
    }
    for options, message in cases.items():
        done = graphfcl_inside(*words, *options)
        assert (done.code, len(done.err.splitlines())) == (2, 1), done.err
        assert message in done.err
    assert not (tmp_path / "run").exists()


@pytest.mark.long
def test_which_of_both_was_taken_is_said(graph: Path, tmp_path: Path) -> None:
    done = graphfcl_inside("run", *RUN, "--graph", graph, "--out", tmp_path / "one")
    assert f"note: {graph} fits into memory and is loaded; give --work to keep it on disk.\n" in done.err
    work = ("--work", tmp_path / "work", "--memory", "2GB", "--workers", "1")
    done = graphfcl_inside("run", *RUN, "--graph", graph, "--out", tmp_path / "two", *work)
    assert f"note: {graph} stays on disk: --work {tmp_path / 'work'}, --memory 2GB.\n" in done.err
    done = graphfcl_inside("run", *RUN, "--graph", SMALL, "--out", tmp_path / "three")
    assert "memory" not in done.err


def stopped(*words: object) -> None:
    """A fit that ends when its first learner was kept."""

    def stop(*_: object) -> None:
        raise InputError("stopped.")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("graphfcl.production.model.fitting.run_held_out", stop)
        assert "stopped." in graphfcl_inside(*words).err


def resumed(graph: Path, model: Path, *words: object) -> Result:
    return graphfcl_inside("fit", *FIT, "--graph", graph, "--model", model, "--resume", "--workers", "1", *words)


@pytest.mark.long
def test_a_fit_goes_on_where_it_was(graph: Path, tmp_path: Path) -> None:
    fit = ("fit", *FIT, "--graph", graph, "--workers", "1")
    stopped(*fit, "--model", tmp_path / "disk", "--work", tmp_path / "work")
    done = resumed(graph, tmp_path / "disk")
    assert done.code == 0, done.err
    assert f"stays on disk: --work {tmp_path / 'work'}" in done.err
    assert (tmp_path / "disk" / "graph.json").exists()
    stopped(*fit, "--model", tmp_path / "memory")
    done = resumed(graph, tmp_path / "memory", "--work", tmp_path / "work")
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert "had its graph in memory: leave --work out" in done.err
    done = resumed(graph, tmp_path / "memory")
    assert done.code == 0, done.err
    assert not (tmp_path / "memory" / "graph.json").exists()


def test_a_fit_that_begins_anew_may_work_elsewhere(graph: Path, tmp_path: Path) -> None:
    fit = ("fit", *FIT, "--graph", graph, "--workers", "1", "--model", tmp_path / "model")
    assert "too small" in graphfcl_inside(*fit, "--work", tmp_path / "work", "--memory", "100MB").err
    done = graphfcl_inside(*fit)
    assert done.code == 0, done.err
    assert not (tmp_path / "model" / "fitting").exists()
