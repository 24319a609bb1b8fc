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
from graphfcl.production.model.versions import Versions
from graphfcl.production.store.database import Database
from tests.cli.command import assert_one_sentence, graphfcl_inside
from tests.production.crafting import CraftedDatabase, stored_chunks
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


def holding(folder: Path, wanted: bytes) -> set[str]:
    """What holds some bytes: kinds of rows, descriptions unpacked; and names of files, whatever of them is in use."""
    places = {path.name for path in folder.rglob("*") if path.is_file() and wanted in path.read_bytes()}
    for name, prefix in (("model.sqlite", ""), ("cache.sqlite", "cache ")):
        if not (folder / name).exists() or not (folder / name).stat().st_size:
            continue
        database = CraftedDatabase(folder / name)
        for kind, content in database.query("SELECT kind, content FROM document"):
            places |= {prefix + kind} if wanted in content else set()
        for size, data in database.query("SELECT size, data FROM chunk"):
            data = data if len(data) == size else zlib.decompress(data)
            places |= {prefix + "chunk"} if wanted in data else set()
    return places - {"model.sqlite", "cache.sqlite"} if places - {"model.sqlite", "cache.sqlite"} else places


def stored_as(folder: Path, wanted: bytes) -> list[bytes]:
    """Some bytes out of every chunk that holds these, as they lie in the file, compressed or not.

    Without patterns of regular content, such as ids that follow each other, which other chunks have, too.
    """
    rows = CraftedDatabase(folder / "model.sqlite").query("SELECT size, data FROM chunk")
    holds = [data for size, data in rows if wanted in (data if len(data) == size else zlib.decompress(data))]
    traces = [data[place : place + 24] for data in holds for place in range(40, len(data) - 24, 500)]
    return [trace for trace in traces if len(set(trace)) > 18]


def in_a_file(folder: Path, traces: list[bytes]) -> list[bytes]:
    """Those that are in any file, in use or not."""
    contents = list(everything(folder).values())
    return [trace for trace in traces if any(trace in content for content in contents)]


def row_of(node: str) -> bytes:
    """The features of a node as an array of them holds them."""
    graph = people()
    row = graph.node_ids.tolist().index(node)
    return graph.features[[row]].data.astype("<f4").tobytes()


def rows(folder: Path) -> list[Any]:
    return CraftedDatabase(folder / "model.sqlite").query("SELECT * FROM document ORDER BY kind, number")


def told(folder: Path) -> list[tuple[int, str]]:
    return [(entry["version"], entry["what"]) for entry in ModelFolder(folder).history()]


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


def _erase(folder: str) -> None:
    ModelFolder(folder).erase([GONE, TRAINED])


def _write(folder: str) -> None:
    """What any verb that writes begins with."""
    with ModelFolder(folder).writing():
        pass


def _killed_at(work: Callable[[str], None], folder: str, statement: int) -> None:
    """Die at the so-manieth statement that writes, or file that goes."""
    left = statement

    def count() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os._exit(9)

    def mortal(plain: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **options: Any) -> Any:
            count()
            done = plain(*arguments, **options)
            count()
            return done

        return called

    Database._write = mortal(Database._write)  # type: ignore[method-assign]
    os.unlink = mortal(os.unlink)
    work(folder)
    os._exit(0)


def _killed(work: Callable[[str], None], folder: Path, statement: int) -> bool:
    process = multiprocessing.get_context("fork").Process(target=_killed_at, args=(work, str(folder), statement))
    process.start()
    process.join()
    assert process.exitcode in (0, 9)
    return process.exitcode == 9


@pytest.fixture
def two(folder: Path) -> Path:
    """A folder with two versions, and what four others told."""
    ModelFolder(folder).prune(2)
    return folder


@pytest.fixture
def clean(two: Path, tmp_path: Path) -> set[str]:
    """The chunks that are left if nobody is killed."""
    done = Path(shutil.copytree(two, tmp_path / "clean"))
    _erase(str(done))
    return stored_chunks(done)


def _check_done(folder: Path, clean: set[str]) -> None:
    assert told(folder)[5:] == [(6, "shrink"), (7, "erase")]
    assert stored_chunks(folder) == clean
    assert not ModelFolder(folder)._versions.database.numbers("erasure")
    assert holding(folder, GONE.encode()) == holding(folder, TRAINED.encode()) == set()
    assert holding(folder, row_of(TRAINED)) == set()


@pytest.mark.long
def test_killed_anywhere_all_versions_have_the_nodes_or_none_has(two: Path, clean: set[str], tmp_path: Path) -> None:
    """The next writer finishes what was committed; erasing again says what the one that was killed did."""
    before, statement, outcomes = told(two), 0, {6: 0, 7: 0}
    while True:
        statement += 7 if outcomes[7] == 0 else 1
        folder = Path(shutil.copytree(two, tmp_path / f"killed {statement}"))
        if not _killed(_erase, folder, statement):
            break
        versions = [GraphClassifier.load(folder, version=version) for version in (None, 5, 6)]
        newest = versions[0].version
        assert newest in (6, 7)
        assert told(folder)[:6] == before
        for model in versions:
            model.parts().read()
            assert (TRAINED in model.node_ids_.tolist()) == (newest == 6)
        outcomes[newest] += 1
        pending = bool(ModelFolder(folder)._versions.database.numbers("erasure"))
        if newest == 7 and (statement % 2 or not pending):
            _write(str(folder))
        else:
            done = ModelFolder(folder).erase([GONE, TRAINED])
            assert (done.nodes, done.versions, done.version) == (2, (5, 6), 7)
        _check_done(folder, clean)
        shutil.rmtree(folder, ignore_errors=True)  # a thread of a model may still write its cache
    assert outcomes[6] > 10
    assert outcomes[7] >= 3


def test_killed_before_the_commit_nothing_has_changed(two: Path, clean: set[str], tmp_path: Path) -> None:
    before = told(two)
    for statement in (1, 2, 20, 60):
        folder = Path(shutil.copytree(two, tmp_path / f"killed {statement}"))
        assert _killed(_erase, folder, statement)
        assert told(folder) == before
        assert TRAINED in GraphClassifier.load(folder).node_ids_.tolist()
        _erase(str(folder))
        _check_done(folder, clean)


def test_bytes_are_gone_even_before_the_file_is_written_anew(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is killed right after the commit leaves no byte in free pages: deleted rows are overwritten."""
    monkeypatch.setattr(Database, "vacuum", lambda _: None)
    traces = stored_as(two, row_of(TRAINED)) + stored_as(two, TRAINED.encode())
    assert in_a_file(two, traces) == traces != []
    _erase(str(two))
    assert in_a_file(two, traces) == []
    assert holding(two, GONE.encode()) == holding(two, TRAINED.encode()) == holding(two, row_of(TRAINED)) == set()


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
