"""Erased nodes are in no file of the folder, whatever version is asked and wherever the process is killed."""

import json
import multiprocessing
import os
import shutil
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphfcl import Graph, GraphClassifier, InputError, ModelFolder
from graphfcl.graph.ids import text_array
from graphfcl.production.answers.version_cache import VersionCache
from graphfcl.production.store.manifests import Manifests
from tests.cli.command import assert_one_sentence, graphfcl_inside
from tests.production.models import HIDDEN, everything, graph_in_memory, quick, same_answers, small_graph


@cache
def people() -> Graph:
    """The small graph, with ids that stand in no other text and numbers that are in no other row."""
    graph = small_graph()
    features = graph.features.copy()
    features.data *= np.repeat(1 + np.arange(graph.node_count) / 1024, np.diff(features.indptr)).astype(np.float32)
    ids = text_array([f"person-{number:04d}@home" for number in graph.node_ids.tolist()])
    return replace(graph, node_ids=ids, features=features)


def members(name: str) -> list[str]:
    graph = people()
    return graph.node_ids[graph.labels == graph.class_number(name)].tolist()


EIGHT, NINE = members("class-08"), members("class-09")
GONE = EIGHT[0]  # was taught, replaced and removed again
TRAINED = members("class-00")[0]


@pytest.fixture(scope="module")
def six(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with six versions; the newest has no node GONE any more."""
    folder = tmp_path_factory.mktemp("six") / "model"
    model = GraphClassifier("anchor", quick("anchor")).fit(people(), hide_classes=HIDDEN)
    model.save(folder)
    model.learn({"eight": EIGHT[:5]}, by="ann", when="2026-01-02").save(folder)
    model.learn({"nine": [*NINE[:4], GONE]}, by="bob", on_conflict="replace").save(folder)
    model.rename("nine", "neun").save(folder)
    model.unlearn([NINE[0]]).save(folder)
    model.remove_nodes([GONE]).save(folder)
    model.wait()
    return folder


@pytest.fixture
def folder(six: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(six, tmp_path / "model"))


def contents(folder: Path) -> dict[str, bytes]:
    """Every file, objects as they are when they are unpacked."""
    return {
        name: zlib.decompress(content[1:]) if name.startswith("objects/") and content[:1] == b"z" else content
        for name, content in everything(folder).items()
    }


def holding(folder: Path, wanted: bytes) -> set[str]:
    """The kinds of files that hold some bytes."""
    return {name.split("/")[0] for name, content in contents(folder).items() if wanted in content}


def row_of(node: str) -> bytes:
    """The features of a node as an array of them holds them."""
    graph = people()
    row = graph.node_ids.tolist().index(node)
    return graph.features[[row]].data.astype("<f4").tobytes()


def told(folder: Path) -> list[tuple[int, str]]:
    return [(entry["version"], entry["what"]) for entry in ModelFolder(folder).history()]


def test_no_file_holds_an_erased_node(folder: Path) -> None:
    erased = [GONE, TRAINED, NINE[0]]
    for node in erased:
        assert holding(folder, node.encode()) >= {"objects"}
        assert holding(folder, row_of(node)) == {"objects"}
    assert holding(folder, GONE.encode()) == {"objects", "versions"}
    assert holding(folder, TRAINED.encode()) == {"objects", "cache"}
    assert holding(folder, b"ann") == {"objects", "versions"}
    before = told(folder)
    done = ModelFolder(folder).erase(erased)
    assert (done.nodes, done.labels, done.versions, done.version) == (3, 3, (1, 2, 3, 4, 5, 6), 7)
    assert (done.trained, done.seen, done.remembering) == (1, 3, ())
    for node in erased:
        assert holding(folder, node.encode()) == set()
        assert holding(folder, row_of(node)) == set()
    assert told(folder) == [*before, (7, "erase")]
    for version in range(1, 8):
        model = GraphClassifier.load(folder, version=version)
        assert not set(erased) & set(model.node_ids_.tolist())
        assert len(model.predict()) == len(model.node_ids_) == 497
        assert not set(erased) & set(model.label_columns()["node"].tolist())
        assert model.graph_.next_number == 500
    entries = ModelFolder(folder).history()
    assert entries[1]["supports"] == {"eight": EIGHT[1:5]}
    assert [said["node"] for said in entries[1]["statements"]] == EIGHT[1:5]
    assert "conflicts" not in entries[2]
    assert [entry.get("erased") for entry in entries] == [None, 1, 2, None, 1, None, None]
    assert entries[6]["exact"] is True


def test_a_version_is_as_if_the_node_had_never_been_there(folder: Path) -> None:
    wanted = GraphClassifier.load(folder, version=1)
    wanted.remove_nodes([GONE]).learn({"eight": EIGHT[1:5]})
    untouched = GraphClassifier.load(folder, version=1)
    untouched.learn({"eight": EIGHT[:5]})
    ModelFolder(folder).erase([GONE])
    found = GraphClassifier.load(folder, version=2)
    same_answers(found, wanted, 1e-5)
    assert found.graph_.node_count == untouched.graph_.node_count - 1


def test_rollback_does_not_bring_a_node_back_and_the_model_goes_on(folder: Path) -> None:
    ModelFolder(folder).erase([GONE])
    assert ModelFolder(folder).rollback(2) == 8
    model = GraphClassifier.load(folder)
    same_answers(model, GraphClassifier.load(folder, version=2), 1e-6)
    assert GONE not in model.node_ids_.tolist()
    model.add_nodes([GONE], people().features[:1])
    assert graph_in_memory(model).numbers[-1] == 500, "its number is not given again"
    assert model.save(folder) == 9
    model.wait()
    assert [entry["what"] for entry in GraphClassifier.load(folder).history][-3:] == ["erase", "rollback", "grow"]


def test_a_class_that_loses_its_last_label_is_retired(folder: Path) -> None:
    ModelFolder(folder).erase(EIGHT[:5])
    assert [("eight" in GraphClassifier.load(folder, version=version).classes_) for version in range(1, 8)] == [
        False
    ] * 7
    assert ModelFolder(folder).history()[-1]["retired"] == ["eight"]


def test_versions_without_the_node_stay_as_they_are(folder: Path) -> None:
    with ModelFolder(folder).editing() as model:
        model.grow(nodes=(["newcomer"], people().features[:1], None))
    model.wait()
    before = everything(folder / "versions")
    done = ModelFolder(folder).erase(["newcomer"])
    assert (done.versions, done.seen, done.trained) == ((7,), 0, 0)
    after = everything(folder / "versions")
    assert {name for name in before if before[name] != after[name]} == {"000007.json"}
    assert holding(folder, b"newcomer") == set()


def test_pruned_versions_tell_of_it_no_more(folder: Path) -> None:
    ModelFolder(folder).prune(1)
    assert holding(folder, GONE.encode()) == {"versions"}
    done = ModelFolder(folder).erase([GONE])
    assert (done.nodes, done.labels, done.versions) == (1, 0, ())
    assert holding(folder, GONE.encode()) == set()
    assert told(folder)[-1] == (7, "erase")


def test_a_reader_of_before_writes_no_cache_after_it(folder: Path) -> None:
    (folder / "cache" / "newest.cache").unlink()
    late, other = GraphClassifier.load(folder), GraphClassifier.load(folder, version=2)
    late.parts().read()
    ModelFolder(folder).erase([TRAINED])
    assert TRAINED in late.node_ids_.tolist()
    late.predict()
    late.wait()
    assert holding(folder, TRAINED.encode()) == set()
    with pytest.raises(InputError, match="which this one was not loaded from"):
        late.rename("eight", "acht").save(folder)
    with pytest.raises(InputError, match="nodes were erased from version 2 while it was read: load it again"):
        other.predict()


def test_a_cache_on_its_way_to_the_disk_comes_too_late(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = VersionCache.write

    def slow(cache: VersionCache, contents: Any, wanted: Callable[[], bool]) -> None:
        ModelFolder(folder).erase([TRAINED])
        plain(cache, contents, wanted)

    (folder / "cache" / "newest.cache").unlink()
    monkeypatch.setattr(VersionCache, "write", slow)
    model = GraphClassifier.load(folder)
    model.predict()
    model.wait()
    assert ModelFolder(folder).current() == 7
    assert holding(folder, TRAINED.encode()) == set()


def test_a_reader_between_pointer_and_manifest_goes_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, waiting = Manifests.pointer, [True]

    def slow(manifests: Manifests) -> tuple[int, str]:
        found = plain(manifests)
        if waiting:
            waiting.clear()
            ModelFolder(folder).erase([TRAINED])
        return found

    monkeypatch.setattr(Manifests, "pointer", slow)
    assert GraphClassifier.load(folder).version == 7


def test_weights_that_cannot_forget_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    model = GraphClassifier("finetune", quick("finetune")).fit(people(), hide_classes=HIDDEN)
    model.save(folder)
    model.learn({"eight": EIGHT[:5]}).save(folder)
    model.remove_nodes([GONE]).save(folder)
    model.wait()
    done = ModelFolder(folder).erase([GONE])
    assert done.versions == (1, 2)
    assert done.remembering == (2, 3)
    assert holding(folder, GONE.encode()) == set()
    assert ModelFolder(folder).history()[-1]["exact"] is False


def test_what_cannot_be_erased_leaves_everything_as_it_was(folder: Path) -> None:
    before = everything(folder)
    with pytest.raises(InputError, match=r"no version of .* has node 'nobody'.*nothing was erased"):
        ModelFolder(folder).erase([GONE, "nobody"])
    with pytest.raises(InputError, match="nothing to erase"):
        ModelFolder(folder).erase([])
    with pytest.raises(InputError, match=r"the nodes are 'p1': give a list of ids, such as \['p1'\]"):
        ModelFolder(folder).erase("p1")
    assert everything(folder) == before
    with pytest.raises(InputError, match=r"version 6: .*only class left.*nothing was erased"):
        ModelFolder(folder).erase(GraphClassifier.load(folder).node_ids_.tolist())
    after = everything(folder)
    assert {name: after[name] for name in before} == before
    path = folder / "versions" / "000004.json"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError, match=r"version 4 is damaged.*prune --model .* --keep 2` removes it"):
        ModelFolder(folder).erase([GONE])
    ModelFolder(folder).prune(2)
    assert ModelFolder(folder).erase([GONE]).version == 7
    assert holding(folder, GONE.encode()) == set()


def _erase(folder: str) -> None:
    ModelFolder(folder).erase([GONE, TRAINED])


def _write(folder: str) -> None:
    """What any verb that writes begins with."""
    with ModelFolder(folder).writing():
        pass


def _killed_at(work: Callable[[str], None], folder: str, call: int) -> None:
    """Die at the so-manieth call that touches the disk, or, if it is 0, as soon as an erasure is decided."""
    left = call

    def mortal(plain: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0 or (call == 0 and (Path(folder) / "versions" / "erasing.json").exists()):
                os._exit(9)
            return plain(*arguments, **options)

        return called

    for name, plain in (("replace", os.replace), ("unlink", os.unlink), ("fsync", lambda _: None)):
        setattr(os, name, mortal(plain))
    work(folder)
    os._exit(0)


def _killed(work: Callable[[str], None], folder: Path, call: int) -> bool:
    process = multiprocessing.get_context("fork").Process(target=_killed_at, args=(work, str(folder), call))
    process.start()
    process.join()
    return process.exitcode == 9


@pytest.fixture
def two(folder: Path) -> Path:
    """A folder with two versions, and what four others told."""
    ModelFolder(folder).prune(2)
    return folder


@pytest.fixture
def clean(two: Path, tmp_path: Path) -> set[str]:
    """The objects that are left if nobody is killed."""
    done = Path(shutil.copytree(two, tmp_path / "clean"))
    _erase(str(done))
    return set(everything(done / "objects"))


def _check_done(folder: Path, clean: set[str]) -> None:
    assert told(folder)[5:] == [(6, "shrink"), (7, "erase")]
    assert set(everything(folder / "objects")) == clean
    assert not (folder / "versions" / "erasing.json").exists()
    assert holding(folder, GONE.encode()) == holding(folder, TRAINED.encode()) == set()


def test_killed_before_the_decision_nothing_has_changed(two: Path, clean: set[str], tmp_path: Path) -> None:
    before = told(two)
    for call in (1, 2, 5, 20, 50):
        folder = Path(shutil.copytree(two, tmp_path / f"killed {call}"))
        assert _killed(_erase, folder, call)
        assert not (folder / "versions" / "erasing.json").exists()
        assert told(folder) == before
        assert TRAINED in GraphClassifier.load(folder).node_ids_.tolist()
        _erase(str(folder))
        _check_done(folder, clean)


@pytest.mark.long
def test_killed_after_the_decision_the_next_writer_finishes(two: Path, clean: set[str], tmp_path: Path) -> None:
    before, call, moments = told(two), 0, 0
    assert _killed(_erase, two, 0)
    assert GONE.encode() not in (two / "versions" / "erasing.json").read_bytes()
    again = Path(shutil.copytree(two, tmp_path / "again"))
    done = ModelFolder(again).erase([GONE, TRAINED])
    assert (done.nodes, done.versions, done.version) == (2, (5, 6), 7), "it says what the one that was killed did"
    _check_done(again, clean)
    while True:
        call += 1 if call < 20 else 5  # from there on objects go, one like the other
        folder = Path(shutil.copytree(two, tmp_path / f"killed {call}"))
        if not _killed(_write, folder, call):
            break
        assert told(folder)[:6] == before, f"killed at call {call}"
        newest = GraphClassifier.load(folder)
        assert newest.version in (6, 7)
        for model in (newest, GraphClassifier.load(folder, version=5), GraphClassifier.load(folder, version=6)):
            model.parts().read()
        moments += (folder / "versions" / "erasing.json").exists()
        _write(str(folder))
        _check_done(folder, clean)
        shutil.rmtree(folder)
    assert moments > 15


def test_a_plan_that_is_damaged_or_of_another_time_is_refused(folder: Path) -> None:
    plan = folder / "versions" / "erasing.json"
    plan.write_bytes(b"{}")
    with pytest.raises(InputError, match=r"erasing.json .*remove that file, and erase again"):
        ModelFolder(folder).rollback(1)
    assert GraphClassifier.load(folder).version == 6
    plan.unlink()
    assert ModelFolder(folder).rollback(1) == 7


def test_the_command(folder: Path, tmp_path: Path) -> None:
    table = tmp_path / "nodes.csv"
    table.write_text(f"node\n{GONE}\n{TRAINED}\n")
    done = graphfcl_inside("erase", "--model", folder, table)
    assert done.code == 0, done.err
    said = " ".join(done.out.split())
    assert "Erased 2 nodes (2 of them with a label) from versions 1 to 6" in said
    assert "anchor: what it knows of classes is as if these nodes had never been there." in said
    assert "`graphfcl fit` saw 2 of them, 1 of them with a label" in said
    assert GONE not in done.out
    history = graphfcl_inside("history", "--model", folder)
    assert "erase 2 nodes and 2 labels from 6 versions" in " ".join(history.out.split())
    assert graphfcl_inside("predict", "--model", folder, "--out", tmp_path / "p.csv").code == 0
    assert GONE not in (tmp_path / "p.csv").read_text()
    assert holding(folder, GONE.encode()) == holding(folder, TRAINED.encode()) == set()
    assert_one_sentence(graphfcl_inside("erase", "--model", folder, table), "no version of")
    assert_one_sentence(graphfcl_inside("erase", "--model", tmp_path / "none", table), "no model")
    entries = json.loads(graphfcl_inside("history", "--model", folder, "--json").out)
    assert [entries[-1][key] for key in ("what", "nodes", "labels", "versions")] == ["erase", 2, 2, 6]
