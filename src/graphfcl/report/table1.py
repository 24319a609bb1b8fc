"""Table 1: the available datasets, with their counts and splits."""

import json
from pathlib import Path
from typing import Any

from graphfcl.datasets import all_datasets, data_folder, load_dataset
from graphfcl.errors import InputError
from graphfcl.report.table import Table
from graphfcl.runtime.files import write_bytes
from graphfcl.stream import make_stream

DATASET_COLUMNS = (
    "dataset",
    "nodes",
    "edges",
    "features",
    "classes",
    "base",
    "pseudo-novel",
    "novel",
    "way",
    "shot",
    "sessions",
)
FILE = "table1.json"
TITLE = "Table 1: the datasets, their classes and their protocol"


def dataset_rows(names: list[str], data_dir: Path | None) -> list[tuple[Any, ...]]:
    """Rows of the named datasets. The default is all datasets with present files that are not synthetic."""
    folder = data_folder(data_dir)
    chosen = names or [
        d.name for d in all_datasets() if not d.missing_files(folder) and not d.name.startswith("synthetic")
    ]
    return [_row(name, data_dir) for name in chosen]


def _row(name: str, data_dir: Path | None) -> tuple[Any, ...]:
    graph, protocol = load_dataset(name, data_dir=data_dir)
    stream = make_stream(graph, protocol, seed=0)
    split = stream.split
    novel = len(split.classes) - split.base_count - split.pseudo_novel_count
    counts = (graph.node_count, graph.edge_count, graph.features.shape[1], len(graph.class_names))
    rules = (stream.protocol.way, stream.protocol.shot, len(stream))
    return (name, *(int(count) for count in counts), split.base_count, split.pseudo_novel_count, novel, *rules)


def write_dataset_table(rows: list[tuple[Any, ...]], folder: str | Path) -> Path:
    """Write the table to a folder, for its report."""
    path = Path(folder) / FILE
    text = json.dumps({"columns": DATASET_COLUMNS, "rows": rows}, indent=1)
    write_bytes(path, text.encode())
    return path


def read_dataset_table(folder: str | Path) -> Table | None:
    """Read the table that :func:`write_dataset_table` wrote to a folder; None if there is none."""
    path = Path(folder) / FILE
    if not path.exists():
        return None
    try:
        stored = json.loads(path.read_bytes())
        rows = tuple(tuple(f"{v:,}" if isinstance(v, int) else str(v) for v in row) for row in stored["rows"])
        return Table(TITLE, tuple(map(str, stored["columns"])), rows)
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is damaged: delete it and run `graphfcl bench table1` again.") from error
