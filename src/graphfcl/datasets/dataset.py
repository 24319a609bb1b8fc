"""The ``Dataset`` class, the data folder, and options such as ``nodes=2000`` in a name."""

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
    """Named graph with its source and default protocol.

    Args:
        name: Name by which :func:`load_dataset` finds it, after :func:`register_dataset`.
        title: Description in one line.
        load: Function of the data folder and of the options in the name. It returns the graph.
        source: Where the files come from.
        protocol: Default protocol. None suggests one from the graph.
        files: Names of the files that must be in the data folder. Empty if the graph needs no files.
        note: Anything that readers of results on it must know.
        options: Names of the options that ``load`` accepts.

    Examples:
        >>> import numpy as np
        >>> from graphfcl import Dataset, build_graph
        >>> def load(folder, options):
        ...     return build_graph(1 - np.eye(4), np.eye(4), ["a", "a", "b", "b"], name="clique")
        >>> Dataset("clique", "four nodes, all linked", load, source="made up").read(None, {})
        Graph('clique', 4 nodes, 6 edges, 4 features, 2 classes)
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
        """List files that are not in a folder.

        Args:
            folder: Data folder. None if no folder is set.

        Returns:
            Names of missing files.
        """
        return tuple(name for name in self.files if folder is None or not (folder / name).exists())

    def read(self, data_dir: str | Path | None, options: dict[str, str]) -> Graph:
        """Load the graph.

        Args:
            data_dir: Folder with the files. Default: the environment variable GRAPHFCL_DATA.
            options: Options in the name, as texts.

        Returns:
            The graph.

        Raises:
            InputError: If a file or the data folder is missing.
        """
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
    """Return the folder of data files: ``data_dir``, else the environment variable, else None."""
    value = data_dir or os.environ.get(DATA_VARIABLE)
    if not value:
        return None
    folder = Path(value).expanduser()
    if not folder.is_dir():
        raise InputError(f"the data folder {folder} does not exist: check --data-dir or ${DATA_VARIABLE}.")
    return folder


def settings_from(kind: type[Settings], options: Mapping[str, str], where: str) -> Settings:
    """Make a settings dataclass from options in text form, each converted to the type of its field."""
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
