"""Versions: their numbers, rollback, their history, and how fast one of many opens."""

import time
from pathlib import Path

import pytest

from graphfcl import GraphClassifier, InputError, ModelFolder
from graphfcl.production.store.database import Database
from tests.production.crafting import stored_versions
from tests.production.models import members, same_answers


def test_versions_are_numbered_and_share_what_did_not_change(folder: Path) -> None:
    model = ModelFolder(folder)
    manifests = [model.manifest(number) for number in (1, 2, 3)]
    assert model.current() == 3
    assert [manifest["parent"] for manifest in manifests] == [None, 1, 2]
    parts = [manifest["parts"] for manifest in manifests]
    assert parts[0]["network"] == parts[1]["network"] == parts[2]["network"]
    assert parts[0]["edges"] == parts[1]["edges"] != parts[2]["edges"]
    assert parts[1]["features"] == parts[2]["features"]
    assert parts[0]["label_store"] != parts[1]["label_store"]
    entries = model.history()
    assert [(entry["version"], entry["what"]) for entry in entries] == [(1, "fit"), (2, "learn"), (3, "grow")]
    assert entries[1]["supports"] == {"eight": members("class-08")[:5]}
    assert entries[1]["accuracy"]["leave_one_out"] is not None


def test_rollback_is_a_new_version_equal_to_the_old(folder: Path) -> None:
    first, before = GraphClassifier.load(folder, version=1), stored_versions(folder)
    assert ModelFolder(folder).rollback(1) == 4
    model = GraphClassifier.load(folder)
    same_answers(model, first, 1e-6)
    assert [entry["what"] for entry in model.history] == ["fit", "learn", "grow", "rollback"]
    assert stored_versions(folder)[:3] == before, "nothing that was there has changed"
    model.learn({"nine": members("class-09")[:5]})
    assert model.save(folder) == 5
    with pytest.raises(InputError, match="no version 9"):
        ModelFolder(folder).rollback(9)


def test_two_thousand_versions_open_like_one(folder: Path) -> None:
    manifest = ModelFolder(folder).manifest(3)
    plain = {key: value for key, value in manifest.items() if key != "sha256"}

    def reads() -> int:
        with open("/proc/self/io") as file:
            return int(file.readline().split()[1])

    def opening() -> tuple[float, int, int]:
        start, before = time.perf_counter(), reads()
        model = GraphClassifier.load(folder)
        assert model.predict([members("class-00")[0]]).size == 1
        return time.perf_counter() - start, reads() - before, model.bytes_read()

    opening()
    few = min(opening() for _ in range(5))
    database = Database(folder / "model.sqlite")
    database.begin()
    for number in range(4, 2001):
        database.put_document("version", number, {**plain, "version": number, "parent": number - 1})
    database.commit()
    model = GraphClassifier.load(folder)
    assert model.version == 2000
    many = min(opening() for _ in range(5))
    assert many[1] < 1.2 * few[1], "bytes that the system was asked for"
    assert many[2] < 1.2 * few[2]
    assert many[0] < 2 * few[0] + 0.005


def test_nothing_is_written_that_could_not_be_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits on what is read hold for what is written."""
    from graphfcl.production.store import database, parts

    before = stored_versions(folder)
    for module, name, words in ((parts, "LARGEST_PART", "cannot be stored"), (database, "LARGEST", "several steps")):
        model = GraphClassifier.load(folder)
        model.learn({"nine": members("class-09")[:5]})
        versions = model._versions
        assert versions is not None
        with versions.writing(0), monkeypatch.context() as patch:
            patch.setattr(module, name, 200)
            with pytest.raises(InputError, match=words):
                model.write_version(versions)
    assert stored_versions(folder) == before


def test_a_history_is_that_of_its_version_whatever_becomes_of_the_folder(folder: Path, tmp_path: Path) -> None:
    early = GraphClassifier.load(folder, version=2)
    late = GraphClassifier.load(folder)
    for name in ("a", "b"):
        late.rename(late.classes_[0], name).save(folder)
    late.wait()
    ModelFolder(folder).prune(1)
    assert [entry["version"] for entry in early.history] == [1, 2]
    other = tmp_path / "other"
    assert late.save(other) == 1
    late.wait()
    assert {entry["version"] for entry in late.history} == {1}
    assert GraphClassifier.load(other).history == late.history


def test_what_cannot_be_read_again_is_not_saved(folder: Path) -> None:
    with pytest.raises(InputError, match="max_loss is inf"):
        GraphClassifier("proto-gcn", max_loss=float("inf"))
    before = stored_versions(folder)
    model = GraphClassifier.load(folder).rename("class-00", "zero")
    model.max_loss = float("nan")
    with pytest.raises(InputError, match="holds the number NaN; nothing was changed"):
        model.save(folder)
    assert stored_versions(folder) == before
    assert GraphClassifier.load(folder).classes_[0] == "class-00"
