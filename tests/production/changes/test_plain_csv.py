"""CSV written without Arrow is what Arrow would write, to the byte."""

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv

from graphfcl.graph.ids import as_arrow, text_array
from graphfcl.production import write_table
from graphfcl.production.changes.written_tables import is_plain, plain_csv

TEXTS = st.text(st.characters(codec="utf-8") | st.sampled_from('",\n\r\\ '), max_size=6)


def by_arrow(columns: dict[str, np.ndarray]) -> bytes:
    out = io.BytesIO()
    csv.write_csv(pa.table({name: as_arrow(values) for name, values in columns.items()}), out)
    return out.getvalue()


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), TEXTS, TEXTS), max_size=5), st.sampled_from(("by", 'a"b,')))
@settings(deadline=None)
def test_it_is_what_arrow_writes(rows: list[tuple[int, str, str]], name: str) -> None:
    columns = {
        "node": np.array([row[0] for row in rows], np.int64),
        "class": text_array([row[1] for row in rows]),
        name: text_array([row[2] for row in rows]),
    }
    assert all(is_plain(values) for values in columns.values())
    assert plain_csv(columns) == by_arrow(columns)


def test_surrogates_are_escaped_as_arrow_needs_them() -> None:
    columns = {"node": text_array(["a\ud800", "b"]), "class": text_array(["x", "ü"])}
    assert plain_csv(columns) == by_arrow(columns)


def test_floats_and_truth_are_left_to_arrow(tmp_path: Path) -> None:
    columns = {"node": np.array([1]), "probability": np.array([0.00001]), "unknown": np.array([True])}
    assert not is_plain(columns["probability"])
    assert not is_plain(columns["unknown"])
    write_table(tmp_path / "p.csv", columns, "predictions")
    assert (tmp_path / "p.csv").read_bytes() == by_arrow(columns)
