"""Find and load datasets by name or path."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from graphfcl.datasets.dataset import Dataset, settings_from
from graphfcl.datasets.registry import REGISTRY
from graphfcl.errors import InputError, did_you_mean
from graphfcl.graph import Graph, TableColumns, read_npz
from graphfcl.graph.build import warn_of_serious
from graphfcl.graph.folder import GraphFolder, is_graph_folder
from graphfcl.graph.tables import SQL, is_table_folder
from graphfcl.graph.tables.columns import ReadColumns
from graphfcl.stream import Protocol

if TYPE_CHECKING:
    from graphfcl.graph import TableFiles


def find_dataset(name: str | Path, columns: ReadColumns | None = None) -> tuple[Dataset, dict[str, str]]:
    """Find a dataset without loading it.

    Args:
        name: Name of a dataset, ``.npz`` file, folder of tables or graph folder. Options follow after a colon, as in
            ``synthetic:nodes=2000,classes=8``.
        columns: Columns of tables that were read before. A folder of tables is read in the same way, except where
            options differ.

    Returns:
        The dataset, and its options as texts.

    Raises:
        InputError: If there is no such dataset or file, or an option is unknown.

    Examples:
        >>> from graphfcl import find_dataset
        >>> dataset, options = find_dataset("synthetic:nodes=2000,classes=8")
        >>> dataset.name, options
        ('synthetic', {'nodes': '2000', 'classes': '8'})
    """
    if not isinstance(name, str | Path):
        raise InputError(f"a dataset is given by its name or a path, not by {type(name).__name__}: pass one of them.")
    stem, options = split_options(str(name))
    names = REGISTRY.names()
    if stem in REGISTRY.own or stem in names:
        dataset = REGISTRY.find(stem).thing
    elif stem.endswith(".npz") or is_table_folder(stem) or Path(stem).is_dir():
        dataset = _of_path(Path(stem), columns)
    elif Path(stem).is_file():
        raise InputError(
            f"{stem} is a file, but no .npz file: give the folder that holds the tables nodes and edges, "
            f"{str(Path(stem).parent)!r}."
        )
    else:
        raise InputError(f"there is no dataset or file {stem!r}: {did_you_mean(stem, names)}")
    unknown = [key for key in options if key not in dataset.options]
    if unknown:
        hint = did_you_mean(unknown[0], dataset.options) if dataset.options else "it has none."
        raise InputError(f"{dataset.name} has no option {unknown[0]!r}: {hint}")
    return dataset, options


def load_dataset(
    name: str | Path, *, data_dir: str | Path | None = None, columns: ReadColumns | None = None
) -> tuple[Graph, Protocol | None]:
    """Load a graph into memory by name or path.

    Use :class:`GraphFolder` to read a graph folder in parts instead.

    Args:
        name: Name of a dataset, ``.npz`` file, folder of tables or graph folder. Options follow after a colon, as in
            ``synthetic:nodes=2000,classes=8``.
        data_dir: Folder with downloaded files. Default: the environment variable GRAPHFCL_DATA.
        columns: Columns of tables that were read before. A folder of tables is read in the same way, except where
            options differ.

    Returns:
        The graph, and its default protocol. The protocol is None if the dataset has none; :func:`make_stream` then
        suggests one.

    Raises:
        InputError: If there is no such dataset or file, an option is wrong, or a file is missing or damaged.

    Examples:
        >>> from graphfcl import load_dataset
        >>> graph, protocol = load_dataset("debian")
        >>> len(graph.class_names), protocol.way, protocol.shot
        (51, 2, 5)
    """
    dataset, options = find_dataset(name, columns)
    return dataset.read(data_dir, options), dataset.protocol


def split_options(name: str) -> tuple[str, dict[str, str]]:
    """Split a name or path from the options after its colon. A part without ``=`` belongs to the value before it."""
    if name.startswith(SQL):
        raise InputError(f"a graph is not one query: give two, as --nodes '{SQL}…' and --edges '{SQL}…'.")
    stem, colon, listed = name.rpartition(":")
    if not colon or "=" not in listed:
        return name, {}
    return stem, option_pairs(listed, name)


def option_pairs(listed: str, name: str | None = None) -> dict[str, str]:
    """Parse ``key=value,key=value``; ``name`` is the whole text for the message."""
    parts: list[str] = []
    for part in listed.split(","):
        if "=" in part or not parts:
            parts.append(part)
        else:
            parts[-1] += f",{part}"
    pairs = [tuple(each.strip() for each in part.partition("=")) for part in parts]
    if not all(key and value.strip(",") for key, _, value in pairs):
        raise InputError(
            f"{name or listed!r}: options are written as {'NAME:' * bool(name)}key=value,key=value, and several values "
            "of one as key=a+b."
        )
    return {key: value for key, _, value in pairs}


def columns_from(options: str | None) -> TableColumns:
    """Make table settings from options in text form."""
    return settings_from(TableColumns, option_pairs(options) if options else {}, "--columns")


def _of_folder(path: Path) -> Graph:
    graph = GraphFolder.open(path).graph()
    warn_of_serious(graph.notes)
    return graph


def graph_of_tables(
    source: "Path | TableFiles", options: Mapping[str, str], columns: ReadColumns | None, where: str
) -> Graph:
    """Read a graph from tables.

    Args:
        source: Folder of tables, or opened tables.
        options: Fields of :class:`TableColumns` as texts.
        columns: Columns of tables that were read before. These tables are read in the same way, except where options
            differ.
        where: Where the options were given, for messages.
    """
    from graphfcl.graph import read_tables  # imports pyarrow
    from graphfcl.graph.tables.table import TableFiles

    given, usual = settings_from(TableColumns, options, where), TableColumns()
    if columns is not None:
        nodes, edges = TableFiles.of(source).open(columns.notation)
        usual = columns.requested(nodes.columns, edges.columns)
    return read_tables(source, usual.with_options({option: getattr(given, option) for option in options}))


def _of_path(path: Path, columns: ReadColumns | None) -> Dataset:
    """Make a dataset of a file or folder."""
    if path.suffix == ".npz":
        return Dataset(path.stem, "a graph file", lambda _, __: read_npz(path), str(path))
    if is_graph_folder(path):
        return Dataset(path.resolve().name, "a graph folder", lambda _, __: _of_folder(path), str(path))
    return Dataset(
        path.resolve().name,
        "a folder of tables",
        lambda _, options: graph_of_tables(path, options, columns, str(path)),
        str(path),
        options=tuple(TableColumns.__dataclass_fields__),
    )
