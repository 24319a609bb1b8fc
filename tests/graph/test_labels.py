"""Labels as users write them: what is unknown, what is one class, and what a note says of it."""

import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphfcl import InputError, TableColumns, build_graph, read_tables
from graphfcl.graph.labels import alike_names
from graphfcl.graph.tables.columns import MISSING
from tests.graph.samples import named_labels

ISSUE = ["shoes ", "shoes", "Jackets", "jackets", "NA", "nan", "None", "unknown", " ", "", "-1", "?", "N/A", "NULL"]


def graph_of(labels: list[str | None], **options: object):  # type: ignore[no-untyped-def]
    count = len(labels)
    return build_graph(np.zeros((count, count)), None, labels, **options)  # type: ignore[arg-type]


def test_labels_as_they_come() -> None:
    graph = graph_of([*ISSUE, None])
    assert graph.class_names == ("Jackets", "jackets", "shoes")
    assert named_labels(graph) == ["shoes", "shoes", "Jackets", "jackets"] + [None] * 11
    unknown, alike = graph.notes[:2]
    assert unknown.startswith("8 labels count as unknown (1 'NA', 1 'nan', 1 'None', 1 'unknown', 1 '-1', 1 '?'")
    assert "missing=" in unknown
    assert "'Jackets' and 'jackets'" in alike


@pytest.mark.parametrize("label", ["#N/A", "<NA>", "n.a.", "N.A.", "-"])
def test_what_spreadsheets_write_for_nothing_is_unknown(label: str) -> None:
    assert named_labels(graph_of([label, "x"])) == [None, "x"]


def test_what_is_missing_can_be_said() -> None:
    graph = graph_of(["NA", "tbd", "TBD ", "x", " "], missing=["tbd"])
    assert named_labels(graph) == [None, None, None, "x", None]
    assert graph.notes[0].startswith("3 labels count as unknown (1 'NA', 1 'tbd', 1 'TBD')")
    with pytest.raises(InputError, match="missing names are the text 'NA': give a list"):
        graph_of(["NA"], missing="NA")


def test_a_name_among_the_class_names_is_a_class() -> None:
    graph = graph_of(["NA", "EU", "na", None], class_names=["EU", "NA"])
    assert named_labels(graph) == ["NA", "EU", None, None]


@given(st.lists(st.sampled_from([*MISSING, "a", "A", "á", "a\u0301", " b", "b"]), min_size=1, max_size=30))
def test_notes_count_what_was_written(labels: list[str]) -> None:
    """Against a plain count."""
    graph = graph_of(list(labels))
    unknown = [text for text in labels if text in MISSING]
    said = [note for note in graph.notes if "count as unknown" in note]
    assert len(said) == bool(unknown)
    if said:
        assert said[0].startswith(f"{len(unknown)} labels")
        assert all(f"{unknown.count(text)} '{text}'" in said[0] for text in unknown)
    names = {unicodedata.normalize("NFC", text).strip() for text in labels if text not in MISSING}
    assert set(graph.class_names) == names
    assert any("case, accents or spaces" in note for note in graph.notes) == (len(names & {"a", "A", "á"}) > 1)


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, [None, None, "b"]),
        ({"missing": "b"}, [None, None, None]),
        ({"known": "NA"}, ["NA", None, "b"]),
        ({"known": "-1+na", "missing": ["B"]}, ["NA", "-1", None]),
    ],
)
def test_a_table_takes_the_same_options(tmp_path: Path, options: dict[str, Any], names: list[str | None]) -> None:
    (tmp_path / "nodes.csv").write_text("id,label\n1,NA\n2,-1\n3,b\n")
    (tmp_path / "edges.csv").write_text("source,target\n")
    assert named_labels(read_tables(tmp_path, TableColumns(**options))) == names


@pytest.mark.parametrize(
    "names", [("é", "E"), ("ñ", "N"), ("ü", "U\u0308"), ("ế", "Ê"), ("ά", "Α"), ("ß", "SS"), ("a  b", "A\u00a0B")]
)
def test_case_accents_and_spaces_make_no_other_name(names: tuple[str, str]) -> None:
    assert alike_names(names) == [list(names)]


@pytest.mark.parametrize("names", ["バス パス", "ガラス カラス", "мой мои", "m² m2", "① 1"])
def test_other_letters_and_signs_make_other_names(tmp_path: Path, names: str) -> None:
    assert alike_names(names.split()) == []
    first, second = names.split()
    (tmp_path / "nodes.csv").write_text(f"id,label\n1,{first}\n2,{second}\n3,{first.upper()}\n", "utf-8")
    (tmp_path / "edges.csv").write_text("source,target\n")
    assert set(read_tables(tmp_path, fold=True).class_names) == {first, second}
