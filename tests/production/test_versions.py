"""What is on the disk: versions, rollback, damage, full disks, the order of writes."""

import builtins
import errno
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from graphfcl import GraphClassifier, InputError, ModelFolder
from graphfcl.production.store.objects import unpacked
from tests.production.models import everything, members, same_answers


def test_versions_are_numbered_and_share_what_did_not_change(folder: Path) -> None:
    model = ModelFolder(folder)
    manifests = [model.manifest(number) for number in (1, 2, 3)]
    assert model.current() == 3
    assert [manifest["parent"] for manifest in manifests] == [None, 1, 2]
    trees = [manifest["trees"] for manifest in manifests]
    assert trees[0]["network"] == trees[1]["network"] == trees[2]["network"]
    assert trees[0]["edges"] == trees[1]["edges"] != trees[2]["edges"]
    assert trees[1]["features"] == trees[2]["features"]
    assert trees[0]["label_store"] != trees[1]["label_store"]
    entries = model.history()
    assert [(entry["version"], entry["what"]) for entry in entries] == [(1, "fit"), (2, "learn"), (3, "grow")]
    assert entries[1]["supports"] == {"eight": members("class-08")[:5]}
    assert entries[1]["accuracy"]["leave_one_out"] is not None


def test_rollback_is_a_new_version_equal_to_the_old(folder: Path) -> None:
    first, before = GraphClassifier.load(folder, version=1), everything(folder)
    assert ModelFolder(folder).rollback(1) == 4
    model = GraphClassifier.load(folder)
    same_answers(model, first, 1e-6)
    assert [entry["what"] for entry in model.history] == ["fit", "learn", "grow", "rollback"]
    after = everything(folder)
    changed = {name for name in before if before[name] != after[name]}
    assert changed <= {"current", "cache/newest.cache"}
    model.learn({"nine": members("class-09")[:5]})
    assert model.save(folder) == 5
    with pytest.raises(InputError, match="no version 9"):
        ModelFolder(folder).rollback(9)


def read(folder: Path, version: int | None = None) -> GraphClassifier:
    """A version of which every part has been read."""
    model = GraphClassifier.load(folder, version=version)
    model.parts().read()
    return model


def object_of(folder: Path, tree: str, block: bool) -> Path:
    """A tree of version 3, or its first block."""
    manifest = json.loads((folder / "versions" / "000003.json").read_bytes())
    name, size = manifest["trees"][tree]
    if not block:
        return folder / "objects" / name
    found = json.loads(unpacked((folder / "objects" / name).read_bytes(), size) or b"")
    return folder / "objects" / next(index["blocks"][0][0] for index in found["arrays"].values() if index["blocks"])


TREE_NAMES = ("nodes", "edges", "features", "network", "knowledge", "label_store")
PLACES = [*((name, True) for name in TREE_NAMES), *((name, False) for name in (*TREE_NAMES, "answers"))]


@pytest.mark.parametrize(("name", "block"), [*PLACES, ("manifest", False), ("current", False)])
@pytest.mark.parametrize("how", ["flipped", "truncated", "missing", "empty"])
def test_damage_is_said_in_a_sentence_and_the_last_good_version_loads(
    folder: Path, name: str, block: bool, how: str
) -> None:
    model = ModelFolder(folder)
    if name == "current":
        path = folder / "current"
    elif name == "manifest":
        path = folder / "versions" / "000003.json"
    else:
        path = object_of(folder, name, block)
    content = path.read_bytes()
    if how == "missing":
        path.unlink()
    elif how == "flipped":
        place = len(content) // 2
        path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
    else:
        path.write_bytes(content[: len(content) // 2] if how == "truncated" else b"")
    if name == "current" and how == "flipped":
        path.write_bytes(content.replace(b'"version":3', b'"version":2'))
    with pytest.raises(InputError) as caught:
        read(folder)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError), model.editing():
        raise AssertionError("a damaged version must not be changed")
    if name == "current":
        same_answers(read(folder, 3), read(folder, 3))
        assert model.rollback(3) == 4
        assert read(folder).version == 4
    elif name not in ("features", "network", "nodes"):  # which all versions share
        number = re.search(r"rollback --model \S+ (\d)", str(caught.value))
        assert number is not None
        good = read(folder, int(number[1]))
        assert model.rollback(int(number[1])) == 4
        same_answers(read(folder), good, 1e-6)


def test_a_newer_format_is_refused_and_left_alone(folder: Path) -> None:
    path = folder / "versions" / "000003.json"
    manifest = json.loads(path.read_bytes())
    path.write_text(json.dumps({**manifest, "format": 99, "graphfcl": "9.0"}))
    before = everything(folder)
    with pytest.raises(InputError, match=r"format 99.*use the graphfcl that wrote it \(9.0\)"):
        GraphClassifier.load(folder)
    with pytest.raises(InputError, match="format 99"), ModelFolder(folder).editing():
        pass
    assert everything(folder) == before


class _FullDisk:
    """Every write after some bytes fails as on a full disk."""

    def __init__(self, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room, plain = room, builtins.open

        def opened(path: Any, mode: str = "r", *rest: Any, **options: Any) -> Any:
            file = plain(path, mode, *rest, **options)
            if "w" in mode and ".tmp" in str(path):
                write = file.write

                def limited(content: bytes) -> int:
                    self.room -= len(content)
                    if self.room < 0:
                        raise OSError(errno.ENOSPC, "No space left on device")
                    return write(content)

                return _Wrapped(file, limited)
            return file

        monkeypatch.setattr(builtins, "open", opened)


class _Wrapped:
    def __init__(self, file: Any, write: Any) -> None:
        self.file, self.write = file, write

    def __enter__(self) -> "_Wrapped":
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


@pytest.mark.parametrize("share", [0, 0.1, 0.4, 0.7, 0.99])
def test_a_full_disk_damages_nothing(
    folder: Path, tmp_path: Path, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = everything(folder)
    model = GraphClassifier.load(folder)
    model.learn({"nine": members("class-09")[:5]})
    with monkeypatch.context() as patch:
        wide = _FullDisk(1 << 30, patch)
        with ModelFolder(shutil.copytree(folder, tmp_path / "twin")).editing(write_cache=False) as twin:
            twin.learn({"nine": members("class-09")[:5]})
        needed = (1 << 30) - wide.room
    with monkeypatch.context() as patch:
        _FullDisk(int(share * needed), patch)
        with pytest.raises(InputError, match="No space left"):
            model.save(folder)
    after = everything(folder)
    assert all(after[name] == content for name, content in before.items())
    assert not list(folder.rglob("*.tmp"))
    assert GraphClassifier.load(folder).version == 3
    assert model.save(folder) == 4, "with room again it is saved"


def test_a_folder_that_cannot_be_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = builtins.open

    def refused(path: Any, mode: str = "r", *rest: Any, **options: Any) -> Any:
        if str(path).startswith(str(folder)) and set(mode) & set("wa"):
            raise OSError(errno.EROFS, "Read-only file system")
        return plain(path, mode, *rest, **options)

    monkeypatch.setattr(builtins, "open", refused)
    model = GraphClassifier.load(folder)
    assert model.predict().size
    model.learn({"nine": members("class-09")[:5]})
    with pytest.raises(InputError, match="Read-only"):
        model.save(folder)


def recorded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Every fsync and every rename from now on."""
    calls: list[tuple[str, str]] = []
    plain_sync, plain_replace = os.fsync, os.replace

    def sync(descriptor: int) -> None:
        calls.append(("fsync", os.readlink(f"/proc/self/fd/{descriptor}")))
        plain_sync(descriptor)

    def replace(source: Any, target: Any) -> None:
        calls.append(("rename", f"{source} -> {target}"))
        plain_replace(source, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", replace)
    return calls


def test_everything_is_flushed_before_what_refers_to_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of write, fsync, rename and fsync of the folder: SIGKILL cannot reveal a missing one."""
    calls = recorded(monkeypatch)
    with ModelFolder(folder).editing() as model:
        model.learn({"nine": members("class-09")[:5]})
        model.add_edges(members("class-09")[:2], members("class-09")[2:4])
    model.wait()
    renames = [place for place, (kind, _) in enumerate(calls) if kind == "rename"]
    targets = [Path(calls[place][1].split(" -> ")[1]) for place in renames]
    for place, target in zip(renames, targets, strict=True):
        source = calls[place][1].split(" -> ")[0]
        assert calls[place - 1] == ("fsync", source), "the file is on the disk before it gets its name"
        assert calls[place + 1] == ("fsync", str(target.parent)), "and the name is, before anything else happens"
    kinds = [target.parent.name if target.name != "current" else "current" for target in targets]
    assert kinds == ["objects"] * kinds.count("objects") + ["versions", "current", "cache"]


def test_files_that_a_killed_writer_left_are_flushed_before_a_manifest_names_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = GraphClassifier.load(folder)
    shutil.rmtree(folder / "versions")
    (folder / "current").unlink()
    calls = recorded(monkeypatch)
    model.save(folder)
    manifest = next(place for place, (kind, _) in enumerate(calls) if kind == "rename")
    assert calls[manifest][1].endswith("/versions/000001.json"), "the files were there and are not written again"
    assert ("fsync", str(folder / "objects")) in calls[:manifest]


def test_the_name_of_a_new_folder_is_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = recorded(monkeypatch)
    with ModelFolder(tmp_path / "new").writing():
        assert ("fsync", str(tmp_path)) in calls


def test_what_a_killed_writer_left_is_swept_and_its_number_used(folder: Path) -> None:
    (folder / "objects" / ".half.123.tmp").write_bytes(b"half")
    (folder / "versions" / "000004.json").write_bytes(b'{"never": "acknowledged"}')
    assert GraphClassifier.load(folder).version == 3
    with ModelFolder(folder).editing() as model:
        model.learn({"nine": members("class-09")[:5]})
    model.wait()
    assert GraphClassifier.load(folder).version == 4
    assert not list(folder.rglob("*.tmp"))


def test_versions_without_a_pointer_are_not_written_over(folder: Path) -> None:
    (folder / "current").unlink()
    before = everything(folder)
    model = GraphClassifier.load(folder, version=3)
    model.learn({"nine": members("class-09")[:5]})
    for attempt in (
        lambda: GraphClassifier.load(folder),
        lambda: model.save(folder),
        lambda: ModelFolder(folder).check_free(),
        lambda: ModelFolder(folder).editing().__enter__(),
    ):
        with pytest.raises(InputError, match=r"is missing: `graphfcl rollback .* 3`"):
            attempt()
    assert {name: content for name, content in everything(folder).items() if name != "lock"} == {
        name: content for name, content in before.items() if name != "lock"
    }
    assert ModelFolder(folder).rollback(3) == 4


def test_nothing_is_written_that_could_not_be_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits on what is read hold for what is written."""
    from graphfcl.production.store import manifests, trees

    before = {name: content for name, content in everything(folder).items() if name.startswith(("versions", "current"))}
    for module, name, words in ((trees, "LARGEST_TREE", "cannot be kept"), (manifests, "LARGEST", "several steps")):
        model = GraphClassifier.load(folder)
        model.learn({"nine": members("class-09")[:5]})
        versions = model._versions
        assert versions is not None
        with versions.writing(0), monkeypatch.context() as patch:
            patch.setattr(module, name, 200)
            with pytest.raises(InputError, match=words):
                model.write_version(versions)
    after = {name: content for name, content in everything(folder).items() if name.startswith(("versions", "current"))}
    assert after == before


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
    before = everything(folder)
    model = GraphClassifier.load(folder).rename("class-00", "zero")
    model.max_loss = float("nan")
    with pytest.raises(InputError, match="holds the number NaN; nothing was changed"):
        model.save(folder)
    after = everything(folder)
    assert {name: after[name] for name in before if not name.startswith("cache")} == {
        name: content for name, content in before.items() if not name.startswith("cache")
    }
    assert GraphClassifier.load(folder).classes_[0] == "class-00"
