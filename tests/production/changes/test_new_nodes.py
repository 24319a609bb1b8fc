"""A model fitted on tables reads later tables by the same columns: words, numbers, categories, dates and vectors."""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from graphfcl import GraphClassifier, GraphfclWarning, InputError, TableColumns, read_tables
from graphfcl.production import read_nodes, read_supports
from tests.cli.command import graphfcl_inside
from tests.methods.test_checks import QUICK
from tests.production.models import graph_in_memory

COLUMNS = (
    "id=asin,label=category,text=title+maker,features=price,categories=colour,dates=added,vectors=emb,source=one,"
    "target=other"
)
WORDS = np.array(["boot", "heel", "sole", "cap", "brim", "wool", "glove", "ring", "chain", "gold"])


def shop(folder: Path) -> dict[str, list[Any]]:
    """Products of five kinds, each with two words and a price of its own."""
    random = np.random.default_rng(0)
    kinds = np.repeat(np.arange(5), 16)
    columns = {
        "asin": [f"p{number}" for number in range(80)],
        "category": [f"kind {kind}" for kind in kinds],
        "title": [" ".join(random.choice(WORDS[2 * kind : 2 * kind + 2], 3)) for kind in kinds],
        "maker": ["acme" if number % 2 else "" for number in range(80)],
        "price": (10.0 * kinds + random.normal(size=80)).tolist(),
        "colour": [["red", "blue", ""][number % 3] for number in range(80)],
        "added": [f"2026-01-{1 + number % 28:02}" for number in range(80)],
        "emb": random.normal(size=(80, 2)).tolist(),
        "comment": ["left out"] * 80,
    }
    parquet.write_table(pa.table(columns), folder / "nodes.parquet")
    ends = [(first, int(random.choice(np.flatnonzero(kinds == kinds[first])))) for first in range(80)]
    edges = {"one": [f"p{first}" for first, _ in ends], "other": [f"p{second}" for _, second in ends]}
    csv.write_csv(pa.table(edges), folder / "edges.csv")
    return columns


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables, and a model of them."""
    folder = tmp_path_factory.mktemp("shop")
    shop(folder)
    quick = [word for key, value in QUICK["proto-gcn"].items() for word in ("--set", f"{key}={value}")]
    done = graphfcl_inside(
        "fit", "--graph", f"{folder}:{COLUMNS}", "--model", folder / "m", "--method", "proto-gcn", "--hide-classes",
        "kind 4", *quick,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert (
        "features are the words of title, maker; numbers price; dates added; categories colour; vectors emb" in done.out
    )
    assert "Not used: comment (not among features=)" in done.out
    return folder


NEW: dict[str, list[Any]] = {
    "asin": ["n1", "n2"],
    "title": ["boot heel zeppelin", "gold ring"],
    "maker": ["", "acme"],
    "price": [1.5, 40],
    "colour": ["blue", "red"],
    "added": ["2026-01-02", "2026-02-01"],
    "emb": [[1.0, 2.0], [3.0, 4.0]],
    "comment": ["a", "b"],
    "category": ["", ""],
}


def test_a_table_of_the_same_form_grows_in(folder: Path, tmp_path: Path) -> None:
    model = GraphClassifier.load(folder / "m")
    new = {**NEW, "colour": ["blue", "green"]}
    parquet.write_table(pa.table(new), tmp_path / "new.parquet")
    csv.write_csv(pa.table({"one": ["n1"], "other": ["p3"]}), tmp_path / "edges.csv")
    grown = graphfcl_inside(
        "grow", "--model", folder / "m", "--nodes", tmp_path / "new.parquet", "--edges", tmp_path / "edges.csv"
    )
    assert grown.code == 0, grown.err
    assert "note, version 2: 1 of 6 words of the new nodes are outside the vocabulary" in grown.out
    assert "has 1 node whose colour is none of the 2 of the fit, such as 'green'" in grown.err
    # The same nodes, had they been in the tables from the start: the raw features are equal, and so is the view.
    whole = tmp_path / "whole"
    whole.mkdir()
    before = shop(whole)
    joined = {name: [*values, *new[name]] for name, values in before.items()}
    parquet.write_table(pa.table(joined), whole / "nodes.parquet")
    options = dict(pair.split("=") for pair in COLUMNS.split(","))
    expected = read_tables(whole, TableColumns(**options))  # type: ignore[arg-type]
    after = graph_in_memory(GraphClassifier.load(folder / "m"))
    assert after.feature_names is not None
    assert expected.feature_names is not None
    place = {name: at for at, name in enumerate(expected.feature_names.tolist())}
    columns = [place[name] for name in after.feature_names.tolist()]
    np.testing.assert_array_equal(after.features.toarray()[-2:], expected.features.toarray()[-2:, columns])
    weights = model.graph_.text_weights
    assert weights is not None
    assert weights.beside is not None
    shown = after.visible.loaded().features.toarray()[-2:]
    np.testing.assert_allclose(shown, weights.apply(after.features).toarray()[-2:])
    assert after.columns.name(shown.shape[1] - 1) == "emb_1"


def test_ids_and_classes_are_found_by_the_names_of_the_fit(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "learn.csv").write_text("asin;category\np64;new\np65;new\n")
    learned = graphfcl_inside("learn", "--model", folder / "m", tmp_path / "learn.csv")
    assert learned.code == 0, learned.err
    again = graphfcl_inside("learn", "--model", folder / "m", tmp_path / "learn.csv")
    assert again.code == 0, again.err
    assert "2 nodes had this label already (p64, p65): nothing changed for them." in again.out
    asked = graphfcl_inside(
        "predict", "--model", folder / "m", "--nodes", tmp_path / "learn.csv", "--out", tmp_path / "p.csv"
    )
    assert asked.code == 0, asked.err
    entries = json.loads(graphfcl_inside("history", "--model", folder / "m", "--json").out)
    assert entries[-1]["unchanged"] == ["p64", "p65"]


def test_a_blank_and_na_in_the_label_column_of_the_fit_are_no_classes(folder: Path) -> None:
    model = GraphClassifier.load(folder / "m", version=1)
    columns = model.configuration.columns
    table = pa.table({"asin": ["p66", "p67", "p68", "p69"], "category": ["kind 4", " ", "na", None]})
    assert [(each.node, each.class_name) for each in read_supports(table, columns)] == [("p66", "kind 4")]
    # A model that has such a class was told so at its fit.
    assert [each.node for each in read_supports(table, columns, classes=["NA"])] == ["p66", "p68"]
    model.learn(table)
    assert model.classes_[-1] == "kind 4"
    # In another column a blank is a mistake.
    with pytest.raises(InputError, match="row 2: node 'p67' has an empty class"):
        model.learn(table.rename_columns(["node", "class"]))
    with pytest.raises(InputError, match="nothing to learn"):
        model.learn(table.slice(1))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"price": None}, r"lacks the feature column 'price': give all 6 of them"),
        ({"price": ["1", "much"]}, r"row 2: column 'price' does not hold a number but 'much'"),
        ({"added": ["2026-01-01", "soon"]}, r"row 2: column 'added' does not hold dates as .* but 'soon'"),
        ({"emb": [[1.0], [1.0, 2.0]]}, r"row 1: column 'emb' has a list of 1 numbers, all others have 2"),
        (
            {"emb": None},
            r"lacks the vectors 'emb': put emb.npy beside it, or give a column 'emb' of lists of 2 numbers",
        ),
        ({"title": None}, r"has no column 'title' \(a text\)"),
        ({"asin": None}, r"has no column 'asin' \(the ids of nodes\)"),
    ],
)
def test_tables_that_lack_something_are_refused(
    folder: Path, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    model = GraphClassifier.load(folder / "m", version=1)
    columns = {name: values for name, values in {**NEW, **change}.items() if values is not None}
    parquet.write_table(pa.table(columns), tmp_path / "new.parquet")
    with pytest.raises(InputError, match=message):
        read_nodes(tmp_path / "new.parquet", model.graph_, model.configuration.columns)


def test_vectors_may_lie_in_a_file_beside_the_table(folder: Path, tmp_path: Path) -> None:
    model = GraphClassifier.load(folder / "m", version=1)
    parquet.write_table(pa.table(NEW), tmp_path / "lists.parquet")
    flat = {name: values for name, values in NEW.items() if name != "emb"}
    csv.write_csv(pa.table(flat), tmp_path / "new.csv")
    np.save(tmp_path / "emb.npy", np.array(NEW["emb"]))
    read = [
        read_nodes(tmp_path / name, model.graph_, model.configuration.columns) for name in ("lists.parquet", "new.csv")
    ]
    np.testing.assert_array_equal(read[0][1], read[1][1])
    assert read[0][2] == read[1][2]
    for wrong, message in (
        (np.zeros((80, 2)), "has 80 rows for 2 nodes"),
        (np.zeros((2, 3)), "has 3 columns, but the vec"),
    ):
        np.save(tmp_path / "emb.npy", wrong)
        with pytest.raises(InputError, match=message):
            read_nodes(tmp_path / "new.csv", model.graph_, model.configuration.columns)
    with pytest.raises(InputError, match="nodes lacks the vectors 'emb': give a column 'emb' of lists of 2 numbers"):
        model.grow(nodes=pa.table(flat))


@pytest.mark.parametrize(
    ("change", "notes"),
    [
        (
            {"category": ["kind 1", "nan "]},
            ["has labels of 1 node in the column 'category': grow does not learn"],
        ),
        ({"category": ["", "Unknown"]}, []),
        ({"colour": ["green", "mauve"]}, ["has 2 nodes whose colour is none of the 2 of the fit, such as 'green'"]),
        ({"colour": ["red", ""]}, []),
    ],
)
def test_what_is_passed_over_of_new_nodes_is_said(
    folder: Path, tmp_path: Path, change: dict[str, Any], notes: list[str]
) -> None:
    model = GraphClassifier.load(folder / "m", version=1)
    new = pa.table({**NEW, **change})
    parquet.write_table(new, tmp_path / "new.parquet")
    told: list[str] = []
    read_nodes(tmp_path / "new.parquet", model.graph_, model.configuration.columns, told.append)
    assert len(told) == len(notes)
    assert all(note in said for note, said in zip(notes, told, strict=True))
    # In Python the same are warnings.
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", GraphfclWarning)
        model.grow(nodes=new)
    warned = [each for each in caught if issubclass(each.category, GraphfclWarning)]
    assert [str(each.message).split()[0] for each in warned] == ["nodes"] * len(notes)


def test_numbers_beside_words_are_asked_for_in_python(folder: Path) -> None:
    model = GraphClassifier.load(folder / "m", version=1)
    numbers = [1.0, 20454.0, 0.0, 1.0, 0.5, 0.5]
    with pytest.raises(InputError, match=r"has 6 numbers beside its words .price, added, colour=blue"):
        model.add_nodes(["n"], texts=["boot"])
    with pytest.raises(InputError, match="have 1 numbers beside their texts, the graph has 6"):
        model.add_nodes(["n"], [[1.0]], texts=["boot"])
    model.add_nodes(["n"], [numbers], texts=["boot"])
    named = {"price": 1.0, "added": 20454.0, "colour=red": 1.0, "emb_0": 0.5, "emb_1": 0.5}
    model.add_nodes(["o"], [named], texts=["boot"])
    rows = graph_in_memory(model).features.toarray()[-2:]
    np.testing.assert_array_equal(rows[0], rows[1])


def test_tables_that_are_not_utf8_are_named_with_the_line(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "learn.csv").write_bytes("asin,category\np1,new\np2,café\n".encode("latin-1"))
    done = graphfcl_inside("learn", "--model", folder / "m", tmp_path / "learn.csv")
    assert done.code == 2
    assert "learn.csv cannot be read as a table (line 3 is not UTF-8): write it as UTF-8." in done.err


@pytest.mark.long
def test_a_model_on_a_graph_folder_reads_the_same_columns(folder: Path, tmp_path: Path) -> None:
    big, model = tmp_path / "big", tmp_path / "m"
    done = graphfcl_inside("data", "import", "--graph", f"{folder}:{COLUMNS}", "--out", big)
    assert done.code == 0, done.err
    fitted = graphfcl_inside(
        "fit", "--graph", big, "--model", model, "--method", "sgc-ridge", "--hide-classes", "kind 4", "--work",
        tmp_path / "work",
    )  # fmt: skip
    assert fitted.code == 0, fitted.err
    assert "Not used: comment (not among features=)" in fitted.out
    parquet.write_table(pa.table({**NEW, "colour": ["blue", "green"]}), tmp_path / "new.parquet")
    grown = graphfcl_inside("grow", "--model", model, "--nodes", tmp_path / "new.parquet")
    assert grown.code == 0, grown.err
    assert "note, version 2: 1 of 6 words of the new nodes are outside the vocabulary" in grown.out
    assert "has 1 node whose colour is none of the 2 of the fit, such as 'green'" in grown.err
    on_disk, in_memory = GraphClassifier.load(model).graph_, GraphClassifier.load(folder / "m", version=1).graph_
    ours, theirs = on_disk.text_weights, in_memory.text_weights
    assert ours is not None
    assert theirs is not None
    assert ours.beside is not None
    assert theirs.beside is not None
    assert ours.beside.groups == theirs.beside.groups
    np.testing.assert_allclose(ours.beside.standardisation.mean, theirs.beside.standardisation.mean)
    assert [on_disk.columns.name(at) for at in range(ours.raw_columns.size)] == [
        in_memory.columns.name(at) for at in range(theirs.raw_columns.size)
    ]
    parquet.write_table(pa.table({"asin": ["n2"]}), tmp_path / "asked.parquet")
    asked = graphfcl_inside(
        "predict", "--model", model, "--nodes", tmp_path / "asked.parquet", "--out", tmp_path / "p.csv"
    )
    assert asked.code == 0, asked.err
    assert (tmp_path / "p.csv").read_text().splitlines()[1].replace('"', "").startswith("n2,")
