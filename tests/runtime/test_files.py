"""Files are replaced as a whole or not at all."""

import errno
import fcntl
import os
import socket
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from graphfcl import InputError, ModelFolder
from graphfcl.runtime.files import canonical_json, file_lock, read_bytes, sha256_of, temporary_beside, write_durably


def test_a_reader_keeps_the_old_content_while_the_new_one_arrives(tmp_path: Path) -> None:
    path = tmp_path / "new" / "result.json"
    write_durably(path, lambda file: file.write(b"old"))
    with path.open("rb") as reader:
        write_durably(path, lambda file: file.write(b"new and longer"))
        assert reader.read() == b"old"
    assert path.read_bytes() == b"new and longer"
    assert [each.name for each in path.parent.iterdir()] == ["result.json"]


def test_the_content_is_on_the_disk_before_its_name_and_the_name_before_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut cannot be had in a test; what is asked of the disk, and in which order, can be seen."""
    seen: list[tuple[str, bytes | Path]] = []
    plain_sync, plain_replace = os.fsync, os.replace

    def sync(descriptor: int) -> None:
        flushed = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        seen.append(("folder", flushed) if flushed.is_dir() else ("content", flushed.read_bytes()))
        plain_sync(descriptor)

    def replace(source: Any, target: Any) -> None:
        seen.append(("name", Path(target)))
        plain_replace(source, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", replace)
    path = tmp_path / "result.json"
    for content in (b"old", b"new and longer"):
        seen.clear()
        write_durably(path, lambda file, content=content: file.write(content))  # type: ignore[misc]
        assert seen == [("content", content), ("name", path), ("folder", tmp_path)]


def test_names_of_new_folders_are_flushed_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[Path] = []
    plain = os.fsync

    def sync(descriptor: int) -> None:
        flushed.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")))
        plain(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    write_durably(tmp_path / "a" / "b" / "result.json", lambda file: file.write(b"new"))
    folders = [path for path in flushed if path.is_dir()]
    assert folders == [tmp_path, tmp_path / "a", tmp_path / "a" / "b"]


def test_a_disk_that_does_not_confirm_is_not_said_to_be_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = os.fsync

    def sync(descriptor: int) -> None:
        if Path(os.readlink(f"/proc/self/fd/{descriptor}")).is_dir():
            raise OSError(5, "Input/output error")
        plain(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    with pytest.raises(InputError, match="was written, but the disk did not confirm it"):
        write_durably(tmp_path / "result.json", lambda file: file.write(b"new"))
    assert (tmp_path / "result.json").read_bytes() == b"new"


@pytest.mark.parametrize(("failure", "raised"), [(OSError(28, "No space left"), InputError), (KeyError(), KeyError)])
def test_a_failed_write_leaves_the_old_content(tmp_path: Path, failure: Exception, raised: type[Exception]) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(b"old")

    def write_half(file: BinaryIO) -> None:
        file.write(b"ne")
        raise failure

    with pytest.raises(raised):
        write_durably(path, write_half)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file" / "inside", tmp_path / ("x" * 300), tmp_path):
        with pytest.raises(InputError, match="cannot be written") as caught:
            write_durably(path, lambda file: file.write(b"new"))
        assert str(path) in str(caught.value)


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the stream .*none\.json does not exist"):
        read_bytes(tmp_path / "none.json", "the stream")
    with pytest.raises(InputError, match=r"the stream .* cannot be read"):
        read_bytes(tmp_path, "the stream")


def test_the_fingerprint_of_bytes() -> None:
    assert sha256_of(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_only_one_holds_a_lock_and_others_wait_as_long_as_they_say(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with file_lock(path, wait=0) as first, file_lock(path, wait=0) as second, file_lock(path, wait=0.12) as third:
        assert (first, second, third) == (True, False, False)
    with file_lock(path) as again:
        assert again


def test_the_same_values_are_the_same_bytes() -> None:
    assert canonical_json({"b": [1, 2.5], "a": "ü"}) == b'{"a":"\\u00fc","b":[1,2.5]}'
    assert canonical_json({"a": "ü"}, ascii_only=False) == '{"a":"ü"}'.encode()


def test_names_of_half_written_files_are_taken_by_nobody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither by another host, nor by a container with the same process ids, nor with the same host name too."""
    path = tmp_path / "result.json"
    here = temporary_beside(path)
    assert here.parent == tmp_path
    assert here.name.startswith(".result.json.")
    assert here.name.endswith(".tmp"), "what is left over is swept by this ending"
    assert str(os.getpid()) in here.name.split(".")
    assert len({temporary_beside(path) for _ in range(100)}) == 100
    monkeypatch.setattr(socket, "gethostname", lambda: "node-7.cluster/örtlich")
    assert ".node-7-cluster--rtlich." in temporary_beside(path).name


def test_a_long_name_leaves_room_for_host_and_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "h" * 64)
    path = tmp_path / ("ü" * 127)  # 254 bytes: one more would be too long
    write_durably(path, lambda file: file.write(b"new"))
    assert path.read_bytes() == b"new"


def test_two_writers_of_one_file_do_not_meet(tmp_path: Path) -> None:
    """The second begins and ends while the first is in the middle; the last one to end stays, whole."""
    path = tmp_path / "result.json"

    def write_slowly(file: BinaryIO) -> None:
        file.write(b"first")
        write_durably(path, lambda other: other.write(b"second"))
        file.write(b", whole")

    write_durably(path, write_slowly)
    assert path.read_bytes() == b"first, whole"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK])
def test_a_file_system_without_locks_is_said_plainly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def flock(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", flock)
    sentence = rf"lock.* cannot be locked, because its file system has no file locks \({os.strerror(number)}\): mount"
    for wait in (None, 0, 5):
        with pytest.raises(InputError, match=sentence), file_lock(tmp_path / "lock", wait=wait):
            raise AssertionError("a lock that does not exist has no holder")
    with pytest.raises(InputError, match="no file locks"), ModelFolder(tmp_path / "model").writing(5):
        raise AssertionError("nor the lock of a model")


def test_another_failure_of_a_lock_is_not_taken_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(OSError, match="Input/output error"), file_lock(tmp_path / "lock"):
        pass
