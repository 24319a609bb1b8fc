"""A model on disk: numbered, immutable versions and one pointer.

::

    current                    {"version": 7, "sha256": that of its page}
    versions/000007.json       what version 7 is: the names of its files, plain values, its changes, its own checksum
    objects/<sha256>.npz|…     the files; a version shares those that did not change
    cache/                     embeddings and scores of the newest version: may be deleted at any time
    lock                       held by the one process that writes

A version's files are written aside, flushed and renamed; then its page; then the pointer. Whoever reads follows the
pointer and finds whole versions only. Nothing that the pointer ever showed is changed or removed.
"""

import datetime
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.files import (
    canonical_json,
    file_lock,
    flush_folder,
    read_bytes,
    safetensors_header,
    sha256_of,
    write_bytes,
)
from graphfcl.production.classifier import GraphClassifier
from graphfcl.production.codec import FILES, Damaged, Files, decode, encode
from graphfcl.production.monitoring import last_accuracy
from graphfcl.version import __version__

FORMAT = 1


class ModelFolder:
    """The folder of one model."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    # Reading

    def exists(self) -> bool:
        return (self.path / "current").exists()

    def current(self) -> int:
        """The number of the newest version."""
        self._refuse_lost_pointer()
        content = read_bytes(self.path / "current", "the model")
        try:
            pointer = json.loads(content)
            version, wanted = int(pointer["version"]), pointer["sha256"]
        except (ValueError, KeyError, TypeError) as error:
            raise self._lost("is damaged") from error
        try:
            named = json.loads(self._page_path(version).read_bytes())["sha256"]
        except (OSError, ValueError, KeyError, TypeError):
            return version  # a damaged page is found when it is read
        if named != wanted:
            raise self._lost("is damaged, it does not fit the version it names")
        return version

    def _lost(self, how: str) -> InputError:
        return InputError(
            f"{self.path / 'current'} {how}: `graphfcl rollback --model {self.path} {self._newest_good()}` goes on "
            "from the last version that is whole."
        )

    def _refuse_lost_pointer(self) -> None:
        """Versions without a pointer must not be written over; a first one alone was never acknowledged."""
        if not self.exists() and self._newest_good() and self._numbers() != [1]:
            raise self._lost("is missing")

    def page(self, version: int) -> dict[str, Any]:
        """What a version is; checked."""
        path = self._page_path(version)
        if not path.exists():
            if self.exists() and version <= self.current():
                raise self._damaged(version, f"{path.name} is missing")
            raise InputError(
                f"{self.path} has no version {version}: `graphfcl history --model {self.path}` lists them."
            )
        try:
            page = json.loads(read_bytes(path, "the version"))
            claimed = page.pop("sha256")
            number = page["format"]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._damaged(version, f"{path.name} is no page of a version") from error
        if not isinstance(number, int) or number > FORMAT:
            raise InputError(
                f"{self.path}, version {version}, has format {number}; this graphfcl reads up to {FORMAT}: use the "
                f"graphfcl that wrote it ({page.get('graphfcl', 'unknown')})."
            )
        if claimed != sha256_of(canonical_json(page)):
            raise self._damaged(version, f"the checksum of {path.name} does not fit")
        return page

    def load(self, version: int | None = None, *, device: str = "cpu") -> GraphClassifier:
        """A version, the newest if none is named."""
        number = self.current() if version is None else version
        page = self.page(number)
        files = self._files(page)
        try:
            model = decode(files, page["values"], device=device)
        except Damaged as error:
            raise self._damaged(number, str(error)) from error
        model.version = number
        model.history = self.history(number)
        self._use_cache(model, page)
        return model

    def history(self, upto: int | None = None) -> list[dict[str, Any]]:
        """Every change, oldest first, with the version it made."""
        entries: list[dict[str, Any]] = []
        for number in range(1, (self.current() if upto is None else upto) + 1):
            try:
                entries += [{**change, "version": number} for change in self.page(number)["changes"]]
            except InputError as error:
                entries.append({"version": number, "when": "", "what": "damaged", "error": str(error)})
        return entries

    def _files(self, page: dict[str, Any]) -> Files:
        files = {}
        for name, kind in FILES.items():
            path = self.path / "objects" / f"{page['files'][name]}.{kind}"
            try:
                files[name] = read_bytes(path, "the file")
            except InputError as error:
                raise self._damaged(page["version"], f"its file {path.name} cannot be read") from error
            if sha256_of(files[name]) != page["files"][name]:
                raise self._damaged(page["version"], f"its file {path.name} ({name}) has another checksum")
        return files

    def _damaged(self, version: int, why: str) -> InputError:
        good = self._newest_good(below=version)
        hint = (
            f"`graphfcl rollback --model {self.path} {good}` goes on from the last version before it that is whole"
            if good
            else "there is no whole version before it"
        )
        return InputError(f"{self.path}: version {version} is damaged, {why}: {hint}.")

    def _newest_good(self, below: int | None = None) -> int:
        """The newest version whose page and files are all whole; 0 if there is none."""
        for number in reversed(self._numbers()):
            if below is not None and number >= below:
                continue
            try:
                page = json.loads(self._page_path(number).read_bytes())
                if page.pop("sha256") != sha256_of(canonical_json(page)):
                    continue
                paths = [self.path / "objects" / f"{page['files'][name]}.{kind}" for name, kind in FILES.items()]
                if all(sha256_of(path.read_bytes()) == path.stem for path in paths):
                    return number
            except (OSError, ValueError, KeyError, TypeError, AttributeError):
                continue
        return 0

    def _numbers(self) -> list[int]:
        return sorted(int(path.stem) for path in (self.path / "versions").glob("*.json") if path.stem.isdigit())

    def _page_path(self, version: int) -> Path:
        return self.path / "versions" / f"{version:06d}.json"

    # Writing

    @contextmanager
    def writing(self, wait: float = 60.0) -> Iterator[None]:
        """Only one process writes at a time; another waits so many seconds, then it is refused."""
        with file_lock(self._lock_path(), wait=wait) as ours:
            if not ours:
                raise InputError(
                    f"{self.path} is being changed by another process, for longer than {wait:g} s: try again later, or "
                    "wait longer with --wait; nothing was changed."
                )
            self._sweep()
            yield

    def _lock_path(self) -> Path:
        """The lock file, which shows that the folder can be written."""
        try:
            if not self.path.is_dir():
                self.path.mkdir(parents=True)
                flush_folder(self.path.parent)
            path = self.path / "lock"
            open(path, "ab").close()
            return path
        except OSError as error:
            raise InputError(
                f"{self.path} cannot be written ({error.strerror}): choose a folder that you may write to."
            ) from error

    def _sweep(self) -> None:
        """Remove what a killed writer left half done; nobody else writes now."""
        for folder in ("objects", "versions", "cache", "."):
            for path in (self.path / folder).glob(".*.tmp"):
                with suppress(OSError):
                    path.unlink()

    @contextmanager
    def editing(self, wait: float = 60.0, *, device: str = "cpu") -> Iterator[GraphClassifier]:
        """The newest version, to be changed; what was changed becomes the next version, or nothing does."""
        self._refuse_lost_pointer()
        if not self.exists():
            raise InputError(f"{self.path} holds no model: make one with `graphfcl fit --model {self.path}`.")
        with self.writing(wait):
            model = self.load(device=device)
            yield model
            if _changes(model):
                self._write(model)

    def check_free(self) -> None:
        """Refuse a folder that holds a model, or that cannot be written, before anything is computed for it."""
        self._refuse_lost_pointer()
        if self.exists():
            raise InputError(
                f"{self.path} holds a model already: choose another folder, or `graphfcl learn` to teach it more."
            )
        self._lock_path()

    def save(self, model: GraphClassifier, *, wait: float = 60.0) -> int:
        """Write a model as the next version. Refused if the folder has moved on since the model was loaded."""
        model._fitted()
        self._refuse_lost_pointer()
        with self.writing(wait):
            there = self.current() if self.exists() else None
            if there is not None and model.version != there:
                raise InputError(
                    f"{self.path} holds version {there} of a model, which this one was not loaded from: load it and "
                    "change it again, or save to another folder."
                )
            if there is not None and not _changes(model):
                return there
            return self._write(model)

    def _write(self, model: GraphClassifier) -> int:
        files, values = encode(model)
        parent = model.version if self.exists() else None
        number = 1 if parent is None else parent + 1
        changes = model.history if parent is None else _changes(model)
        changes = [{key: value for key, value in change.items() if key != "version"} for change in changes]
        names = self._write_files(files)
        page = self._publish(number, parent, names, values, changes)
        for entry in model.history:
            entry["version"] = number if entry["version"] is None or parent is None else entry["version"]
        model.version = number
        self._write_cache(model, page)
        return number

    def _write_files(self, files: Files) -> dict[str, str]:
        names = {}
        for name, content in files.items():
            names[name] = sha256_of(content)
            path = self.path / "objects" / f"{names[name]}.{FILES[name]}"
            with suppress(OSError):
                if sha256_of(path.read_bytes()) == names[name]:
                    continue
            write_bytes(path, content)
        flush_folder(self.path / "objects")  # a file found there may come from a writer that was killed before this
        return names

    def _publish(
        self,
        number: int,
        parent: int | None,
        files: dict[str, str],
        values: dict[str, Any],
        changes: list[dict[str, Any]],
    ) -> dict[str, Any]:
        """Write the page of a version whose files are there, then move the pointer."""
        page = {
            "format": FORMAT,
            "graphfcl": __version__,
            "version": number,
            "parent": parent,
            "written": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "files": files,
            "values": values,
            "changes": changes,
        }
        # Through JSON once, so that the checksum is that of what will be read.
        page = json.loads(canonical_json(page))
        digest = sha256_of(canonical_json(page))
        content = canonical_json({**page, "sha256": digest})
        pointer = canonical_json({"version": number, "sha256": digest})
        write_bytes(self._page_path(number), content)
        write_bytes(self.path / "current", pointer)
        return page

    def rollback(self, version: int, *, wait: float = 60.0) -> int:
        """Write a new version equal to an old one; answers its number. Works also if newer versions are damaged."""
        if not (self.path / "versions").is_dir():
            raise InputError(f"{self.path} holds no model: check the path.")
        with self.writing(wait):
            page = self.page(version)
            model = self.load(version)
            number = self._numbers()[-1] + 1
            with suppress(InputError):
                # A page above the pointer was never acknowledged: its number is free.
                number = self.current() + 1
            change: dict[str, Any] = {"what": "rollback", "to": version, "when": _now()}
            accuracy = last_accuracy(model.history)
            if accuracy:
                change["accuracy"] = accuracy
            page = self._publish(number, number - 1, page["files"], page["values"], [change])
            self._write_cache(model, page)
            return number

    # Embeddings and scores of the newest version, so that asking needs no forward pass

    def _cache_key(self, page: dict[str, Any]) -> str:
        files = {name: page["files"][name] for name in FILES if name != "ledger"}
        return sha256_of(canonical_json([files, page["values"]["method"], page["values"]["learner"]]))

    def _write_cache(self, model: GraphClassifier, page: dict[str, Any]) -> None:
        from safetensors.numpy import save

        graph = model.graph_
        tensors = {"table": model.learner_.embedding_table(graph.visible), "scores": model.all_scores()}
        tensors = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
        digest = sha256_of(b"".join(tensor.tobytes() for tensor in tensors.values()))
        content = save(tensors, {"key": self._cache_key(page), "sha256": digest})
        with suppress(InputError):  # it can be computed again
            write_bytes(self.path / "cache" / "newest.safetensors", content)

    def _use_cache(self, model: GraphClassifier, page: dict[str, Any]) -> None:
        from safetensors import SafetensorError
        from safetensors.numpy import load

        graph = model.graph_
        try:
            content = (self.path / "cache" / "newest.safetensors").read_bytes()
            header = safetensors_header(content)
            if header["key"] != self._cache_key(page):
                return
            tensors = load(content)
            if header["sha256"] != sha256_of(tensors["table"].tobytes() + tensors["scores"].tobytes()):
                return
        except (OSError, ValueError, KeyError, TypeError, SafetensorError):
            return
        model.learner_.use_table(graph.visible, tensors["table"])
        model._scores = tensors["scores"]


def _changes(model: GraphClassifier) -> list[dict[str, Any]]:
    """What has been changed since the model was loaded or saved."""
    return [entry for entry in model.history if entry["version"] is None]


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
