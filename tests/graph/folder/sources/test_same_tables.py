"""The reader in memory and the import accept the same tables and refuse the others with the same sentence."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from graphfcl import Graph, InputError, TableColumns, read_tables
from graphfcl.graph.folder import build_folder
from graphfcl.graph.folder.sources import tables_source
from graphfcl.graph.tables import table as reader

MEMORY = 300 << 20
IDS = {
    "range": lambda number: str(number),
    "numbers": lambda number: str(number * 7 - 20),
    "texts": lambda number: f"n{number}",
    "accents": lambda number: ("e\u0301", "\u00e9t\u00e9")[number % 2] + str(number),
    "zeros": lambda number: f"00{number}",
    "spaces": lambda number: f" x {number}  ",
    "long": lambda number: f"node-{number}-" + "z" * 40,
}


@dataclass
class Tables:
    """Rows of two tables, header first. raw: what replaces bytes of the written files."""

    draw: random.Random
    nodes: list[list[str]] = field(default_factory=list)
    edges: list[list[str]] = field(default_factory=list)
    raw: list[tuple[str, bytes, bytes]] = field(default_factory=list)

    @classmethod
    def drawn(cls, draw: random.Random) -> "Tables":
        tables = cls(draw)
        kind = IDS[draw.choice(list(IDS))]
        count = draw.choice([0, 1, 2, 5, 30])
        ids = [kind(number) for number in range(count)]
        draw.shuffle(ids)
        labels = ["a", "b", " a", "", "NA", "7", "A"]
        tables.nodes = [["id", "label", "f", "note"]]
        for node in ids:
            row = [
                node,
                draw.choice(labels),
                draw.choice(["1", "-2.5", " 3", "n/a"]),
                draw.choice(["", "x, y", 'q"q', "z"]),
            ]
            tables.nodes.append(row)
        weighted, typed = draw.random() < 0.5, draw.random() < 0.3
        tables.edges = [["source", "target", *["weight"] * weighted, *["type"] * typed]]
        for _ in range(draw.choice([0, 1, 8, 60]) if ids else 0):
            ends = [draw.choice([node, node.strip()]) for node in draw.choices(ids, k=2)]
            weight = draw.choice(["1", "0", "0.5", "2"])
            tables.edges.append([*ends, *[weight] * weighted, *["t"] * typed])
        return tables

    def row(self, rows: list[list[str]]) -> list[str]:
        """Any whole row below the header; an empty list where there is none."""
        whole = [row for row in rows[1:] if len(row) == len(rows[0])]
        return self.draw.choice(whole) if whole else []

    def put(self, rows: list[list[str]], column: str, value: str) -> None:
        """Replace the value of a column in any row, if there are both."""
        row = self.row(rows)
        if row and column in rows[0]:
            row[rows[0].index(column)] = value

    def write(self, folder: Path, suffix: str, separator: str, ending: str) -> None:
        for stem, rows in (("nodes", self.nodes), ("edges", self.edges)):
            if suffix == "parquet":
                columns = [
                    [row[place] if place < len(row) else None for row in rows[1:]] for place in range(len(rows[0]))
                ]
                arrays = [pa.array([value or None for value in values], pa.string()) for values in columns]
                parquet.write_table(pa.table(arrays, names=rows[0]), folder / f"{stem}.parquet", row_group_size=4)
                continue
            lines = [separator.join(_quoted(value, separator) for value in row) for row in rows]
            content = (ending.join(lines) + ending).encode()
            for name, before, after in self.raw:
                content = content.replace(before, after, 1) if name == stem else content
            (folder / f"{stem}.{suffix}").write_bytes(content)


def _quoted(value: str, separator: str) -> str:
    plain = not any(letter in value for letter in (separator, '"', "\n"))
    return value if plain else '"' + value.replace('"', '""') + '"'


def _same_id_again(tables: Tables) -> None:
    row = tables.row(tables.nodes)
    if row:
        tables.nodes.append([row[0], *row[1:]])


def _same_id_once_cleaned(tables: Tables) -> None:
    row = tables.row(tables.nodes)
    if row:
        tables.nodes.insert(tables.draw.randrange(1, len(tables.nodes)), [row[0] + " ", *row[1:]])


FAULTS: dict[str, Callable[[Tables], None]] = {
    "no id": lambda tables: tables.put(tables.nodes, "id", ""),
    "same id": _same_id_again,
    "same id once cleaned": _same_id_once_cleaned,
    "control in id": lambda tables: tables.put(tables.nodes, "id", "a\x07"),
    "long id": lambda tables: tables.put(tables.nodes, "id", "y" * 1_001),
    "control in label": lambda tables: tables.put(tables.nodes, "label", "a\x07"),
    "no feature": lambda tables: tables.put(tables.nodes, "f", ""),
    "infinite feature": lambda tables: tables.put(tables.nodes, "f", "inf"),
    "word for a feature": lambda tables: tables.put(tables.nodes, "f", "much"),
    "text of two lines": lambda tables: tables.put(tables.nodes, "note", "first\nsecond"),
    "short row of nodes": lambda tables: tables.nodes.append(["x"]),
    "no source": lambda tables: tables.put(tables.edges, "source", ""),
    "no target": lambda tables: tables.put(tables.edges, "target", ""),
    "unknown source": lambda tables: tables.put(tables.edges, "source", "nobody"),
    "unknown target": lambda tables: tables.put(tables.edges, "target", "9223372036854775808"),
    "other spelling": lambda tables: tables.put(tables.edges, "target", "007"),
    "weight below 0": lambda tables: tables.put(tables.edges, "weight", "-1"),
    "no weight": lambda tables: tables.put(tables.edges, "weight", ""),
    "weight in words": lambda tables: tables.put(tables.edges, "weight", "heavy"),
    "infinite weight": lambda tables: tables.put(tables.edges, "weight", "inf"),
    "two types": lambda tables: tables.put(tables.edges, "type", "u"),
    "long row of edges": lambda tables: tables.edges.append(["x"] * 9),
    "empty line": lambda tables: tables.nodes.insert(1, []),
    "nodes not UTF-8": lambda tables: tables.raw.append(("nodes", b"a", b"\xff")),
    "edges not UTF-8": lambda tables: tables.raw.append(("edges", b"t,", b"\xff,")),
    "no edges column": lambda tables: tables.edges[0].__setitem__(0, "start"),
}
WEIGHTS = {"weight below 0", "no weight", "weight in words", "infinite weight"}


@pytest.fixture(autouse=True, scope="module")
def _small_blocks() -> Iterator[None]:
    """So that every table of more than a few rows is read in several parts."""
    before = reader.BYTES, reader.NUMBERS
    reader.BYTES, reader.NUMBERS = 1_500, 20
    yield
    reader.BYTES, reader.NUMBERS = before


def graph_or_sentence(read: Callable[[], Graph]) -> Graph | str:
    """What a reader gives, or why it does not."""
    try:
        return read()
    except InputError as error:
        return str(error)


def compare(folder: Path, seed: int) -> bool:
    """Read the tables of a seed in both ways; whether they are refused."""
    draw = random.Random(seed)
    tables = Tables.drawn(draw)
    faults = draw.sample(list(FAULTS), draw.choice([0, 1, 1, 1, 2, 3]))
    if len(WEIGHTS.intersection(faults)) > 1:  # of several, a reader of blocks finds the first and not the worst
        faults = [fault for fault in faults if fault not in WEIGHTS]
    for fault in faults:
        FAULTS[fault](tables)
    folder.mkdir()
    tables.write(
        folder, draw.choice(["csv", "csv", "tsv", "parquet"]), draw.choice(",;\t"), draw.choice(["\n", "\r\n"])
    )
    columns = TableColumns(
        repeated=draw.choice(["max", "sum", "count", "last"]),
        unknown_ends=draw.choice(["refuse", "refuse", "skip"]),
        fold=draw.choice(["no", "yes"]),
        features=draw.choice([None, None, "f"]),
    )
    expected = graph_or_sentence(lambda: read_tables(folder, columns))
    imported = graph_or_sentence(
        lambda: build_folder(tables_source(folder, columns), folder / "out", memory=MEMORY).graph()
    )
    if isinstance(expected, str) or isinstance(imported, str):
        assert imported == expected, (seed, faults)
        return True
    assert imported.sha256 == expected.sha256, (seed, faults)
    assert (imported.notes, imported.cleaned) == (expected.notes, expected.cleaned), (seed, faults)
    assert imported.columns == expected.columns, (seed, faults)
    return False


def test_tables_are_accepted_and_refused_alike(tmp_path: Path) -> None:
    refused = [compare(tmp_path / str(seed), seed) for seed in range(20)]
    assert 5 < sum(refused) < 18


@pytest.mark.long
def test_500_tables_are_accepted_and_refused_alike(tmp_path: Path) -> None:
    refused = [compare(tmp_path / str(seed), seed) for seed in range(1_000, 1_500)]
    assert 150 < sum(refused) < 450
