"""Import datasets, files and graphs into graph folders."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from graphfcl.datasets import find_dataset, split_options
from graphfcl.datasets.dataset import settings_from
from graphfcl.datasets.synthetic import SYNTHETIC, SYNTHETIC_REDDIT, synthetic_settings
from graphfcl.datasets.synthetic_blocks import synthetic_source
from graphfcl.errors import InputError
from graphfcl.graph import TableColumns
from graphfcl.graph.convert import as_graph
from graphfcl.graph.folder import GraphFolder, build_folder, is_graph_folder
from graphfcl.graph.folder.source import Source, of_graph
from graphfcl.graph.folder.sources import npz_source, ogb_source, raw_folder, tables_source
from graphfcl.graph.tables import is_table_folder
from graphfcl.graph.tables.table import TableFiles
from graphfcl.runtime.memory import parse_bytes


def import_graph(
    source: Any,
    out: str | Path,
    *,
    memory: str | int = "2GB",
    name: str | None = None,
    data_dir: str | Path | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> GraphFolder:
    """Build a graph folder with bounded memory.

    The folder appears only when it is complete.

    Args:
        source: Name or path of a dataset, tables from :func:`open_tables`, the raw folder of an OGB node data set, a
            :class:`Graph`, PyG data or a networkx graph.
        out: Folder to create.
        memory: Memory that the process may use, in bytes or as a text such as ``2GB``.
        name: Name of the graph. Default: a name from the source.
        data_dir: Folder with downloaded files. Default: the environment variable GRAPHFCL_DATA.
        tell: Called with a sentence after each step.

    Returns:
        The opened folder.

    Raises:
        InputError: If the source cannot be read, ``out`` exists already, or the memory is too small.

    Examples:
        >>> from graphfcl import import_graph, load_dataset
        >>> graph, _ = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=30")
        >>> import_graph(graph, "big", name="demo")
        GraphFolder('big', 200 nodes, 800 edges, 30 features, 6 classes)
    """
    limit = parse_bytes(memory, "--memory") if isinstance(memory, str) else memory
    return build_folder(_source(source, data_dir), out, memory=limit, name=name, tell=tell)


def find_source(name: str, data_dir: str | Path | None = None) -> Source:
    """Return the source for a name or path.

    Files and synthetic graphs are processed in blocks; other datasets are loaded into memory.
    """
    stem, options = split_options(name)
    path = Path(stem)
    if path.suffix in (".pt", ".pth"):
        raise InputError(
            f"{path} is a pickle, which is never loaded: load it yourself and call graphfcl.import_graph(data, out)."
        )
    if is_graph_folder(path):
        raise InputError(f"{path} is a graph folder already: copy it.")
    if raw_folder(path) is not None and not is_table_folder(path):
        if options:
            raise InputError(f"{path} takes no options: remove {next(iter(options))!r}.")
        return ogb_source(path)
    dataset, options = find_dataset(name)
    if dataset in (SYNTHETIC, SYNTHETIC_REDDIT):
        return synthetic_source(synthetic_settings(dataset.name, options), dataset.name, name)
    if path.suffix == ".npz":
        return npz_source(path)
    if path.is_dir():
        return tables_source(path, settings_from(TableColumns, options, str(path)))
    return of_graph(dataset.read(data_dir, options), made_of=name)


def _source(source: Any, data_dir: str | Path | None) -> Source:
    if isinstance(source, str | Path):
        return find_source(str(source), data_dir)
    if isinstance(source, TableFiles):
        return tables_source(source)
    return of_graph(as_graph(source, "import_graph").loaded())
