"""Erased nodes are in no file of the folder, whatever version is asked and wherever the process is killed."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphfcl import GraphClassifier, InputError, ModelFolder
from graphfcl.production.answers.version_cache import VersionCache
from graphfcl.production.model.versions import Versions
from tests.cli.command import assert_one_sentence, graphfcl_inside
from tests.production.crafting import CraftedDatabase, stored_chunks
from tests.production.erasures import (
    EIGHT,
    GONE,
    NINE,
    TRAINED,
    holding,
    in_a_file,
    people,
    row_of,
    rows,
    stored_as,
    told,
)
from tests.production.models import HIDDEN, graph_in_memory, quick, same_answers


@pytest.fixture
def folder(six: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(six, tmp_path / "model"))


def test_no_file_holds_an_erased_node(folder: Path) -> None:
    erased = [GONE, TRAINED, NINE[0]]
    for node in erased:
        assert holding(folder, node.encode()) >= {"chunk"}
        assert holding(folder, row_of(node)) == {"chunk"}
    assert holding(folder, GONE.encode()) == {"chunk", "version"}
    assert holding(folder, TRAINED.encode()) == {"chunk", "cache chunk"}
    assert holding(folder, b"ann") >= {"chunk", "version"}
    before, traces = told(folder), stored_as(folder, row_of(TRAINED))
    assert in_a_file(folder, traces) == traces != []
    done = ModelFolder(folder).erase(erased)
    assert in_a_file(folder, traces) == []
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
    before = rows(folder)
    done = ModelFolder(folder).erase(["newcomer"])
    assert (done.versions, done.seen, done.trained) == ((7,), 0, 0)
    after = rows(folder)
    assert [one[1] for one, other in zip(before, after, strict=False) if one != other] == [7]
    assert holding(folder, b"newcomer") == set()


def test_pruned_versions_tell_of_it_no_more(folder: Path) -> None:
    ModelFolder(folder).prune(1)
    assert holding(folder, GONE.encode()) == {"pruned"}
    done = ModelFolder(folder).erase([GONE])
    assert (done.nodes, done.labels, done.versions) == (1, 0, ())
    assert holding(folder, GONE.encode()) == set()
    assert told(folder)[-1] == (7, "erase")


def test_a_reader_of_before_writes_no_cache_after_it(folder: Path) -> None:
    (folder / "cache.sqlite").unlink()
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

    (folder / "cache.sqlite").unlink()
    monkeypatch.setattr(VersionCache, "write", slow)
    model = GraphClassifier.load(folder)
    model.predict()
    model.wait()
    assert ModelFolder(folder).current() == 7
    assert holding(folder, TRAINED.encode()) == set()


def test_a_reader_between_two_queries_goes_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, waiting = Versions.current, [True]

    def slow(versions: Versions) -> int:
        newest = plain(versions)
        if waiting:
            waiting.clear()
            ModelFolder(folder).erase([TRAINED])
        return newest

    monkeypatch.setattr(Versions, "current", slow)
    model = GraphClassifier.load(folder)
    assert model.version == 6
    assert TRAINED not in model.node_ids_.tolist()


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
    before = rows(folder), stored_chunks(folder)
    with pytest.raises(InputError, match=r"no version of .* has node 'nobody'.*nothing was erased"):
        ModelFolder(folder).erase([GONE, "nobody"])
    with pytest.raises(InputError, match="nothing to erase"):
        ModelFolder(folder).erase([])
    with pytest.raises(InputError, match=r"the nodes are 'p1': give a list of ids, such as \['p1'\]"):
        ModelFolder(folder).erase("p1")
    assert (rows(folder), stored_chunks(folder)) == before
    with pytest.raises(InputError, match=r"version 6: .*only class left.*nothing was erased"):
        ModelFolder(folder).erase(GraphClassifier.load(folder).node_ids_.tolist())
    assert (rows(folder), stored_chunks(folder)) == before
    CraftedDatabase(folder / "model.sqlite").query("UPDATE document SET content = x'00' WHERE number = 4")
    with pytest.raises(InputError, match=r"version 4 is damaged.*prune --model .* --keep 2` removes it"):
        ModelFolder(folder).erase([GONE])
    ModelFolder(folder).prune(2)
    assert ModelFolder(folder).erase([GONE]).version == 7
    assert holding(folder, GONE.encode()) == set()


def test_the_command(folder: Path, tmp_path: Path) -> None:
    table = tmp_path / "nodes.csv"
    table.write_text(f"node\n{GONE}\n{TRAINED}\n")
    done = graphfcl_inside("erase", "--model", folder, table)
    assert done.code == 0, done.err
    said = " ".join(done.out.split())
    assert "Erased 2 nodes (2 of them with a label) from versions 1 to 6" in said
    assert "anchor: its class statistics are as if these nodes had never existed." in said
    assert "`graphfcl fit` used 2 of them, 1 of them with a label" in said
    assert GONE not in done.out
    history = graphfcl_inside("history", "--model", folder)
    assert "erase 2 nodes and 2 labels from 6 versions" in " ".join(history.out.split())
    assert graphfcl_inside("predict", "--model", folder, "--out", tmp_path / "p.csv").code == 0
    assert GONE not in (tmp_path / "p.csv").read_text()
    assert holding(folder, GONE.encode()) == holding(folder, TRAINED.encode()) == set()
    assert_one_sentence(graphfcl_inside("erase", "--model", folder, table), "no version of")
    assert_one_sentence(graphfcl_inside("erase", "--model", tmp_path / "none", table), "does not exist")
    entries = json.loads(graphfcl_inside("history", "--model", folder, "--json").out)
    assert [entries[-1][key] for key in ("what", "nodes", "labels", "versions")] == ["erase", 2, 2, 6]
