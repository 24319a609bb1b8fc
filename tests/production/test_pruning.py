"""Old versions go; the newest and what a kept one needs never do, wherever the process is killed."""

import multiprocessing
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from graphfcl import GraphClassifier, InputError, ModelFolder
from graphfcl.production.store.database import Database
from tests.cli.command import assert_one_sentence, graphfcl_inside
from tests.production.crafting import CraftedDatabase, stored_chunks
from tests.production.models import everything, members, same_answers


@pytest.fixture(scope="module")
def five(kept: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with five versions."""
    folder = Path(shutil.copytree(kept, tmp_path_factory.mktemp("five") / "model"))
    model = GraphClassifier.load(folder)
    model.learn({"nine": members("class-09")[:5]}).save(folder)
    model.rename("nine", "neun").save(folder)
    model.wait()
    return folder


@pytest.fixture
def folder(five: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(five, tmp_path / "model"))


def told(folder: Path) -> list[tuple[int, str]]:
    return [(entry["version"], entry["what"]) for entry in ModelFolder(folder).history()]


def test_old_versions_go_and_history_still_tells_of_them(folder: Path) -> None:
    before, model = told(folder), GraphClassifier.load(folder)
    fourth = GraphClassifier.load(folder, version=4)
    fourth.parts().read()
    before_all, size = stored_chunks(folder), (folder / "model.sqlite").stat().st_size
    done = ModelFolder(folder).prune(2)
    assert (done.versions, done.kept) == ((1, 2, 3), (4, 5))
    assert done.freed > 0
    assert stored_chunks(folder) < before_all
    assert (folder / "model.sqlite").stat().st_size <= size - done.freed
    assert told(folder) == before
    same_answers(GraphClassifier.load(folder), model)
    same_answers(GraphClassifier.load(folder, version=4), fourth, 1e-6)
    entries = ModelFolder(folder).history()
    assert [entry.get("pruned", False) for entry in entries] == [True, True, True, False, False]
    assert entries[1]["supports"] == {"eight": members("class-08")[:5]}
    assert len(GraphClassifier.load(folder).history) == 5
    again = ModelFolder(folder).prune(2)
    assert (again.versions, again.freed) == ((), 0)
    with pytest.raises(InputError, match=r"version 2 was pruned, so its content is gone: .*history"):
        ModelFolder(folder).rollback(2)
    assert ModelFolder(folder).rollback(4) == 6
    assert ModelFolder(folder).prune(1).versions == (4, 5)
    assert [version for version, _ in told(folder)] == [1, 2, 3, 4, 5, 6]


def test_a_model_goes_on_after_pruning(folder: Path) -> None:
    ModelFolder(folder).prune(1)
    with ModelFolder(folder).editing() as model:
        model.rename("neun", "nine")
    model.wait()
    assert GraphClassifier.load(folder).version == 6
    assert [entry["what"] for entry in GraphClassifier.load(folder).history][-1] == "rename"


def _killed_at(folder: str, statement: int) -> None:
    """Prune, and die at the so-manieth statement that writes."""
    left, plain = statement, Database._write

    def mortal(database: Database, sql: str, *values: Any) -> int:
        nonlocal left
        left -= 1
        if left == 0:
            os._exit(9)
        return plain(database, sql, *values)

    Database._write = mortal  # type: ignore[method-assign,assignment]
    ModelFolder(folder).prune(2)
    os._exit(0)


@pytest.mark.long
def test_killed_anywhere_nothing_that_is_kept_is_lost(five: Path, tmp_path: Path) -> None:
    clean = Path(shutil.copytree(five, tmp_path / "clean"))
    ModelFolder(clean).prune(2)
    context = multiprocessing.get_context("fork")
    before, statement, codes = told(five), 0, []
    while 0 not in codes:
        statement += 1
        folder = Path(shutil.copytree(five, tmp_path / f"killed {statement}"))
        process = context.Process(target=_killed_at, args=(str(folder), statement))
        process.start()
        process.join()
        codes.append(process.exitcode)
        assert process.exitcode in (0, 9)
        assert told(folder) == before, f"killed at statement {statement}"
        for version in (5, 4):
            GraphClassifier.load(folder, version=version).parts().read()
        ModelFolder(folder).prune(2)
        assert told(folder) == before
        assert stored_chunks(folder) == stored_chunks(clean), "the next call finishes the work"
        shutil.rmtree(folder, ignore_errors=True)  # a thread of a model may still write its cache
    assert codes.count(9) > 10, "there were many moments"


def test_if_nobody_can_say_what_a_kept_version_needs_nothing_is_removed(folder: Path) -> None:
    CraftedDatabase(folder / "model.sqlite").query("UPDATE document SET content = x'00' WHERE number = 4")
    before = everything(folder)
    with pytest.raises(InputError, match="version 4 is damaged"):
        ModelFolder(folder).prune(2)
    assert everything(folder) == before
    assert ModelFolder(folder).prune(1).versions == (1, 2, 3, 4), "it need not be kept"
    assert GraphClassifier.load(folder).parts().read()
    assert told(folder)[3] == (4, "damaged")


def test_the_command(folder: Path, tmp_path: Path) -> None:
    done = graphfcl_inside("prune", "--model", folder, "--keep", "2")
    assert done.code == 0, done.err
    assert "Removed 3 versions" in done.out
    assert "versions 4 to 5 are kept" in done.out
    assert graphfcl_inside("prune", "--model", folder, "--keep", "0").code == 2
    assert_one_sentence(graphfcl_inside("prune", "--model", tmp_path / "none", "--keep", "1"), "does not exist")
    assert_one_sentence(graphfcl_inside("rollback", "--model", folder, "2"), "was pruned")
    assert_one_sentence(
        graphfcl_inside("predict", "--model", folder, "--version", "1", "--out", tmp_path / "p.csv"), "was pruned"
    )
    shown = graphfcl_inside("history", "--model", folder).out
    assert "learn eight" in shown
    assert shown.count("(pruned)") == 3
