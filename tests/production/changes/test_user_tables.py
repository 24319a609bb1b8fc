"""Later tables are read as those of the fit were: what is missing, what is unknown, what says nothing of a label."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from graphfcl import GraphClassifier, GraphfclWarning, InputError, from_frames, from_scipy
from graphfcl.graph.tables.columns import ReadColumns
from graphfcl.production import read_supports
from tests.cli.command import graphfcl_inside
from tests.frames import LIBRARIES, columns_of, frame_of
from tests.production.changes.test_frames import made, tables
from tests.production.models import graph_in_memory


def shop() -> tuple[dict[str, Any], dict[str, Any]]:
    """The sample graph with a title, a flag, and columns that the fit does not use; ``tbd`` means unknown."""
    nodes, edges = tables()
    count = len(nodes["sku"])
    found = {
        "sku": nodes["sku"],
        "category": [name or "tbd" for name in nodes["category"]],
        "title": [f"word{row % 7} " * 300 for row in range(count)],
        "active": ["true" if row % 3 else "false" for row in range(count)],
        **{name: nodes[name] for name in ("x0", "x1", "x2", "x3")},
        **{f"unused{place}": [f"a{row}" for row in range(count)] for place in range(25)},
    }
    return found, edges


OPTIONS = "id=sku,label=category,text=title,features=active+x0+x1+x2+x3,missing=tbd"


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables in ``shop``, and a model of them in ``m``."""
    folder = tmp_path_factory.mktemp("fitted")
    (folder / "shop").mkdir()
    for name, columns in zip(("nodes", "edges"), shop(), strict=True):
        csv.write_csv(pa.table(columns), folder / "shop" / f"{name}.csv")
    done = graphfcl_inside(
        "fit", "--graph", f"{folder / 'shop'}:{OPTIONS}", "--model", folder / "m", "--method", "sgc-ridge",
        "--hide-classes", "class-07",
    )  # fmt: skip
    assert done.code == 0, done.err
    return folder


# A missing id


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_missing_id_is_named_and_no_row_is_dropped(library: str) -> None:
    model = made(library)
    asked = frame_of(library, {"sku": [None, "p1", "p2"]})
    for ask in (model.predict, model.predictions, model.labels, model.unknown_scores):
        with pytest.raises(InputError, match="nodes, row 1: a node id is missing in column 'sku'"):
            ask(asked)
    with pytest.raises(InputError, match="supports, row 2: a node id is missing in column 'sku'"):
        model.learn(frame_of(library, {"sku": ["p1", None], "category": ["class-00", "class-01"]}))
    with pytest.raises(InputError, match="edges, row 2: a node id is missing in column 'source'"):
        model.grow(edges=frame_of(library, {"source": ["p1", None], "target": ["p2", None]}))
    assert len(model.history) == 1


def test_a_missing_id_in_a_file_is_named_with_its_line(fitted: Path, tmp_path: Path) -> None:
    def ask(text: str) -> Any:
        (tmp_path / "asked.csv").write_text(text)
        return graphfcl_inside(
            "predict", "--model", fitted / "m", "--nodes", tmp_path / "asked.csv", "--out", tmp_path / "p.csv"
        )

    done = ask("sku,x0\np1,1\n,2\n")
    assert done.code == 2
    assert "asked.csv, line 3: a node id is missing in column 'sku': fill it in, or drop the row." in done.err
    # A blank line is none of the rows.
    assert ask("sku,x0\np1,1\n\np2,2\n").code == 0
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 3


# What means unknown


def test_names_that_meant_unknown_at_the_fit_do_so_later(fitted: Path) -> None:
    model, nodes = GraphClassifier.load(fitted / "m"), shop()[0]
    columns = model.configuration.columns
    assert columns is not None
    assert columns.missing == ("tbd",)
    known = [row for row, name in enumerate(nodes["category"]) if name not in ("tbd", "class-07")]
    some = [*known[:10], nodes["category"].index("tbd")]
    table = pa.table({"sku": [nodes["sku"][row] for row in some], "category": [nodes["category"][row] for row in some]})
    assert model.score(table) == model.score(table.slice(0, 10))
    assert model.score(table["sku"].to_pylist(), table["category"].to_pylist()) == model.score(table)
    before = model.classes_
    model.learn(table)
    assert model.classes_ == before
    with pytest.raises(InputError, match="no node with a class to score"):
        model.score(table.slice(10))
    with pytest.raises(InputError, match="no node with a class to score"):  # the usual names mean so, too
        model.score(["p1"], ["NA"])


@pytest.mark.parametrize("column", ["category", "class", "label"])
def test_they_do_so_in_any_column_of_classes(fitted: Path, column: str) -> None:
    model, nodes = GraphClassifier.load(fitted / "m"), shop()[0]
    free = [node for node, name in zip(nodes["sku"], nodes["category"], strict=True) if name == "tbd"][:5]
    table = pa.table({"sku": free, column: ["NA", "unknown ", "TBD", "class-00", "new"]})
    model.learn(table)
    assert model.history[-1]["supports"] == {"class-00": free[3:4], "new": free[4:]}
    model.learn({"NA": free[:1]})  # a name that is given in words is a class, and then one in tables
    model.learn(table.slice(0, 3), on_conflict="keep")
    assert model.classes_[-2:] == ("new", "NA")
    assert columns_of(model.labels(free))["node"] == [free[0], *free[3:]]


def test_a_known_name_stays_a_class_in_any_column() -> None:
    columns = replace(ReadColumns("sku", "category", "source", "target"), known=("NA",))
    table = pa.table({"sku": ["p1", "p2"], "class": ["NA", "null"]})
    assert [each.class_name for each in read_supports(table, columns)] == ["NA"]
    plain = table.rename_columns(["node", "class"])
    assert read_supports(plain) == []


def test_grow_tells_of_labels_only_where_the_class_is_known(fitted: Path, recwarn: pytest.WarningsRecorder) -> None:
    model, nodes = GraphClassifier.load(fitted / "m"), shop()[0]
    new = {**{name: values[:2] for name, values in nodes.items()}, "sku": ["n1", "n2"], "category": ["TBD", ""]}
    model.grow(nodes=pa.table(new))
    assert not [each for each in recwarn if issubclass(each.category, GraphfclWarning)]


def test_columns_are_stored_as_json() -> None:
    plain = ReadColumns("sku", "category", "source", "target")
    columns = replace(
        plain, missing=("tbd",), known=("null",), unused=("stock",), medians={"price": 2.5, "added": 20_000.0},
        marked=("price",), decimal="comma", fold=True, features=("price", "added"), drop=("stock",), min_nodes=3,
        unknown_ends="skip",
    )  # fmt: skip
    assert ReadColumns.from_json(json.loads(json.dumps(columns.as_json()))) == columns
    assert [columns.means_unknown(name) for name in ("NA ", "TBD", "NULL", "")] == [True, True, False, True]
    assert columns.as_json().keys() - plain.as_json().keys() == {
        "missing", "known", "unused", "medians", "marked", "decimal", "fold", "features", "drop",
        "min_nodes", "unknown_ends",
    }  # fmt: skip
    assert ReadColumns.from_json(plain.as_json()) == plain
    wrongs: tuple[dict[str, Any], ...] = (
        {"missing": "tbd"},
        {"unused": [1]},
        {"other": []},
        {"medians": [2.5]},
        {"medians": {"price": "2.5"}},
        {"medians": {"price": float("nan")}},
        {"marked": ["stock"]},
        {"marked": [["price"]]},
        {"decimal": "dot"},
        {"fold": 1},
        {"features": "price"},
        {"min_nodes": "3"},
        {"unknown_ends": "drop"},
    )
    for wrong in wrongs:
        with pytest.raises(ValueError, match=r"column|settings"):
            ReadColumns.from_json({**columns.as_json(), **wrong})


# True and false


@pytest.mark.parametrize("values", [["true", "False"], [True, False], ["1", "0"], [1.0, 0.0]])
def test_truth_values_of_new_nodes_are_read_as_at_the_fit(fitted: Path, tmp_path: Path, values: list[Any]) -> None:
    model, nodes = GraphClassifier.load(fitted / "m"), shop()[0]
    new = {**{name: column[:2] for name, column in nodes.items()}, "sku": ["n1", "n2"], "category": [None, None]}
    parquet.write_table(pa.table({**new, "active": values}), tmp_path / "new.parquet")
    model.grow(nodes=parquet.read_table(tmp_path / "new.parquet"))
    names = graph_in_memory(model).feature_names
    assert names is not None
    assert graph_in_memory(model).features.toarray()[-2:, names.tolist().index("active")].tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["1", "1_000"], "row 2: column 'x0' does not hold a number but '1_000'"),
        (["true", "perhaps"], "row 2: column 'x0' does not hold a number but 'perhaps'"),
        (["2.5", "true"], "row 2: column 'x0' does not hold a number but 'true'"),
        ([1.0, float("inf")], "row 2: column 'x0' is infinite"),
    ],
)
def test_what_the_fit_reads_as_no_number_grow_refuses(fitted: Path, values: list[Any], message: str) -> None:
    model, nodes = GraphClassifier.load(fitted / "m"), shop()[0]
    new = {**{name: column[:2] for name, column in nodes.items()}, "sku": ["n1", "n2"], "category": [None, None]}
    with pytest.raises(InputError, match=message):
        model.grow(nodes=pa.table({**new, "x0": values}))


# What is kept with a label


def test_the_table_of_the_fit_teaches_labels_and_nothing_else(fitted: Path, tmp_path: Path) -> None:
    model, nodes = GraphClassifier.load(fitted / "m"), shop()[0]
    rows = [row for row, name in enumerate(nodes["category"]) if name == "class-07"]
    taught = {name: [values[row] for row in rows] for name, values in nodes.items()}
    taught["ticket"] = [f"T-{row}" for row in rows]
    parquet.write_table(pa.table(taught), tmp_path / "taught.parquet")
    model.learn(parquet.read_table(tmp_path / "taught.parquet"))
    assert model.classes_[-1] == "class-07"
    kept = columns_of(model.labels(taught["sku"]))
    assert list(kept) == ["node", "class", "part", "by", "when", "ticket"]
    assert kept["ticket"] == taught["ticket"]
    # A model that does not know which columns the fit passed over cannot pass over them.
    older = pa.table({"node": ["p1"], "class": ["x"], **{f"other{place}": ["a"] for place in range(25)}})
    with pytest.raises(InputError, match="25 further columns, at most 20 are kept"):
        model.learn(older)


def test_a_long_value_is_cut_with_a_note(fitted: Path, tmp_path: Path) -> None:
    model, nodes = GraphClassifier.load(fitted / "m"), shop()[0]
    free = [node for node, name in zip(nodes["sku"], nodes["category"], strict=True) if name == "tbd"][:3]
    table = pa.table({"sku": free, "category": ["new"] * 3, "why": ["short", "long " * 400, "\n" + "x" * 1001]})
    note = "2 values of further columns are longer than 1,000 characters, such as 'why' in row 2: they were cut"
    with pytest.warns(GraphfclWarning, match=note):
        model.learn(table)
    kept = columns_of(model.labels(free))["why"]
    assert kept == ["short", ("long " * 400)[:1000].strip(), "x" * 1000]
    csv.write_csv(table.set_column(2, "why", [["short", "long " * 400, "x"]]), tmp_path / "taught.csv")
    done = graphfcl_inside("learn", "--model", fitted / "m", tmp_path / "taught.csv")
    assert done.code == 0, done.err
    assert "note: " in done.err
    assert "1 value of further columns is longer than 1,000 characters, such as 'why' in line 3: it was cut" in done.err


# Class numbers


def test_whole_floats_are_the_class_numbers_that_they_mean() -> None:
    nodes, edges = tables()
    numbers = [float(name[-1]) if name else float("nan") for name in nodes["category"]]
    with_numbers = pa.table({**nodes, "category": pa.array(numbers, from_pandas=True)})
    graph = from_frames(with_numbers, pa.table(edges), id="sku", label="category")
    model = GraphClassifier("sgc-ridge", max_loss=1.0).fit(graph)
    assert model.classes_[:2] == (0, 1)
    ids = nodes["sku"]
    assert model.score(ids, np.array(numbers)) == model.score(ids, numbers) > 0
    free = [node for node, number in zip(ids, numbers, strict=True) if number != number]
    model.learn({1.0: free[:2]})
    assert "1.0" not in model.classes_
    with pytest.warns(GraphfclWarning, match="none of the classes that were given, such as 'nowhere', is one of the"):
        assert model.score(ids[:2], ["nowhere", "nothing"]) == 0


def test_whole_floats_are_the_ids_that_they_mean() -> None:
    adjacency = np.ones((4, 4)) - np.eye(4)
    from scipy import sparse

    from graphfcl.production.graph.growing_graph import GrowingGraph

    for ids, asked in (([3, 5, 7, 9], [5.0, np.float32(9)]), (["3", "5", "x", "9"], [5.0, 9.0])):
        graph = from_scipy(sparse.csr_array(adjacency), np.eye(4), [0, 0, 1, 1], node_ids=ids)
        assert GrowingGraph.of(graph).rows_of_ids(asked).tolist() == [1, 3]
    # Ids that are texts of floats are found by the floats too.
    graph = from_scipy(sparse.csr_array(adjacency), np.eye(4), [0, 0, 1, 1], node_ids=["3.0", "5.0", "x", "y"])
    assert GrowingGraph.of(graph).rows_of_ids([5.0, 6.0]).tolist() == [1, -1]
