"""What a dataset is, and the small things all of them need."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from graphfcl.errors import InputError, did_you_mean
from graphfcl.graph import Graph
from graphfcl.stream import Protocol

DATA_VARIABLE = "GRAPHFCL_DATA"
Settings = TypeVar("Settings")


@dataclass(frozen=True)
class Dataset:
    """One named graph.

    load: called with the folder of data files, in which all ``files`` are, and the options of the name; returns the
        graph.
    protocol: the default rules; None suggests them from the graph.
    files: what must lie in the data folder; none if the graph is shipped or made.
    source: where the files come from.
    note: anything a reader of its figures must know.
    """

    name: str
    title: str
    load: Callable[[Path, dict[str, str]], Graph]
    source: str
    protocol: Protocol | None = None
    files: tuple[str, ...] = ()
    note: str = ""
    options: tuple[str, ...] = field(default=())

    def missing_files(self, folder: Path | None) -> tuple[str, ...]:
        """Those of ``files`` that are not in the folder."""
        return tuple(name for name in self.files if folder is None or not (folder / name).exists())

    def read(self, data_dir: str | Path | None, options: dict[str, str]) -> Graph:
        """The graph; an error if a file is missing. data_dir: see :func:`data_folder`."""
        if not self.files:
            return self.load(Path(), options)
        folder = data_folder(data_dir)
        missing = self.missing_files(folder)
        if folder is not None and not missing:
            return self.load(folder, options)
        place = "no data folder is set" if folder is None else f"{folder} lacks {', '.join(missing)}"
        hint = f" {self.note}" if self.note else ""
        raise InputError(
            f"{self.name} needs the files {', '.join(self.files)}, but {place}: get them from {self.source}, and name "
            f"their folder with --data-dir or ${DATA_VARIABLE}.{hint}"
        )


def data_folder(data_dir: str | Path | None) -> Path | None:
    """The folder of data files: ``data_dir``, or that of the environment."""
    value = data_dir or os.environ.get(DATA_VARIABLE)
    if not value:
        return None
    folder = Path(value).expanduser()
    if not folder.is_dir():
        raise InputError(f"the data folder {folder} does not exist: check --data-dir or ${DATA_VARIABLE}.")
    return folder


def settings_from(kind: type[Settings], options: Mapping[str, str], where: str) -> Settings:
    """A settings dataclass from ``key=value`` options, each turned into the type of its field."""
    names = [item.name for item in fields(kind)]  # type: ignore[arg-type]
    hints = get_type_hints(kind)
    values: dict[str, Any] = {}
    for key, text in options.items():
        if key not in names:
            raise InputError(f"{where} has no option {key!r}: {did_you_mean(key, names)}")
        convert = next((t for t in (int, float) if hints[key] is t), str)
        try:
            values[key] = convert(text.replace("_", "")) if convert is not str else text
        except ValueError as error:
            wanted = "a whole number" if convert is int else "a number"
            raise InputError(f"{where}: {key} is {text!r}, it must be {wanted}.") from error
    return kind(**values)
