"""A table reads the same as a whole, in blocks, and as a small table that a user hands in."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from graphfcl import InputError
from graphfcl.graph.tables import table as reader
from graphfcl.graph.tables.table import Table
from graphfcl.graph.tables.values import numbers_of
from graphfcl.production.changes.user_tables import TextTable

Rows = list[tuple[str, tuple[str, ...]]]  # what a message calls a row, and its values

CELL = st.sampled_from(["", "a", " b ", "7", "007", "NA", '"two\nlines"', '"a;b,c"', '"say ""x"""', '""', "é", "true"])
LINE = st.lists(CELL, min_size=1, max_size=4).map(",".join) | st.lists(CELL, min_size=3, max_size=3).map(",".join)
TEXTS = st.builds(
    lambda header, lines, end: header + end + end.join(lines) + end,
    st.sampled_from(["id,label,x", " id , label,x", "id;label;x", "id,x,x", "\ufeffid,label,x"]),
    st.lists(LINE | st.just(""), max_size=12),
    st.sampled_from(["\n", "\r\n"]),
)


def rows_or_sentence(read: Callable[[Path], Rows], path: Path) -> Rows | str:
    try:
        return read(path)
    except InputError as error:
        return str(error)


def rows_of(table: Table) -> Rows:
    values = zip(*(table.texts(name, None).tolist() for name in table.columns), strict=True)
    return [(table.line(row), each) for row, each in enumerate(values)]


def whole(path: Path) -> Rows:
    table = Table(path)
    table.read()
    return rows_of(table)


def in_blocks(path: Path) -> Rows:
    table = Table(path)
    return [row for block in table.blocks(table.columns) for row in rows_of(block)]


def as_text(path: Path) -> Rows:
    table = TextTable.read(path)
    values = zip(*table.columns.values(), strict=True)
    return [(table.line(row), each) for row, each in enumerate(values)]


@settings(max_examples=150, deadline=None)
@given(text=TEXTS, size=st.integers(60, 400))
@example(text="id,label,x\na,b,1\n\n,,\nc,d,2\n", size=400)
@example(text="id,label,x\na,b,1\nc,d\n", size=400)
def test_the_same_rows_lines_and_sentences(text: str, size: int) -> None:
    before = reader.BYTES
    reader.BYTES = size
    with TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_bytes(text.encode())
        try:
            found = [rows_or_sentence(read, path) for read in (whole, in_blocks, as_text)]
        finally:
            reader.BYTES = before
    assert found[0] == found[1]
    if isinstance(found[0], str):
        assert found[2] == found[0]
    else:
        assert found[2] == [row for row in found[0] if any(row[1])]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"id,label\n1,\xff\n", "line 2 is not UTF-8"),
        ("id,label\n1,a\n".encode("utf-16"), "is UTF-16"),
        (b"id,id\n1,2\n", "has two columns 'id'"),
        (b"", "cannot be read as a table"),
    ],
)
def test_files_that_are_no_tables(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    first, *others = (rows_or_sentence(read, path) for read in (whole, in_blocks, as_text))
    assert sentence in first
    assert all(other == first for other in others)


def test_parquet_has_rows_and_not_lines(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"id": ["a", None, "c"], "x": [1, 2, None]}), path)
    expected = [("row 1", ("a", "1")), ("row 2", ("", "2")), ("row 3", ("c", ""))]
    assert whole(path) == in_blocks(path) == as_text(path) == expected
    path.write_bytes(path.read_bytes()[:-9])
    first, *others = (rows_or_sentence(read, path) for read in (whole, in_blocks, as_text))
    assert "t.parquet cannot be read as a table" in first
    assert all(other == first for other in others)


@given(values=st.lists(st.sampled_from(["1", "2.5", "true", "False", "big", "", " NULL"]), min_size=1, max_size=6))
@settings(max_examples=60, deadline=None)
def test_numbers_are_those_of_the_fit(values: list[str]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_text("id,x\n" + "".join(f"{row},{value}\n" for row, value in enumerate(values)))
        table = Table(path)
        table.read()

        def read(numbers: Callable[[], np.ndarray]) -> list[float | None] | str:
            try:
                return [None if np.isnan(number) else number for number in numbers().tolist()]
            except InputError as error:
                return str(error)

        found = read(lambda: numbers_of(TextTable.read(path).table, "x"))
        assert found == read(lambda: numbers_of(table, "x"))
        words = [row for row, value in enumerate(values) if value in ("true", "False", "big")]
        wrong = [row for row in words if values[row] == "big"]
        plain = [value for value in values if value in ("1", "2.5")]
        if wrong:
            assert f"line {wrong[0] + 2}: column 'x' does not hold a number but 'big'" in found
        elif words and "2.5" in plain:
            assert f"line {words[0] + 2}: column 'x' does not hold a number but '{values[words[0]]}'" in found
        else:
            flags = {"true": "1", "False": "0"}
            assert found == [float(flags.get(each, each)) if each not in ("", " NULL") else None for each in values]
