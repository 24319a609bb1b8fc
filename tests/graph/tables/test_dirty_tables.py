"""Exports of a database: missing values, spellings, repeated edges and edges to nodes that are not there."""

from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphfcl import Graph, InputError, TableColumns, from_frames, import_graph, read_tables
from graphfcl.graph.tables import gaps, table
from tests.graph.samples import named_labels
from tests.graph.tables.test_reader import tables

EDGES = "source,target\n1,2\n"


def in_both_ways(folder: Path, **options: Any) -> Graph:
    """The graph of a folder, which is the same in memory and on disk."""
    graph = read_tables(folder, **options)
    listed = ",".join(f"{option}={value}" for option, value in options.items())
    number = sum(1 for _ in folder.glob("out*"))
    stored = import_graph(f"{folder}:{listed}" if listed else folder, folder / f"out{number}").graph()
    assert stored.sha256 == graph.sha256
    assert stored.columns == graph.columns
    assert stored.notes == graph.notes
    return graph


def column(graph: Graph, name: str) -> list[float]:
    assert graph.feature_names is not None
    place = graph.feature_names.tolist().index(name)
    return np.asarray(graph.features[:, [place]].todense() if graph.sparse_features else graph.features[:, [place]])[
        :, 0
    ].tolist()


# Missing numbers and dates


def test_missing_numbers_are_filled_by_the_median_and_marked(tmp_path: Path) -> None:
    rows = ["1,a,1.5,4,true", "2,b,n/a,-1,", "3,a,,0,false", "4,b,7,2,TRUE", "5,a,NaN,9,NULL", "6,b,2,1,true"]
    nodes = "\n".join(["id,label,price,stock,flag", *rows, ""])
    graph = in_both_ways(tables(tmp_path, nodes, EDGES))
    assert graph.feature_names is not None
    assert graph.feature_names.tolist() == ["price", "stock", "flag", "price missing", "flag missing"]
    assert column(graph, "price") == [1.5, 2, 2, 7, 2, 2]
    assert column(graph, "price missing") == [0, 1, 1, 0, 1, 0]
    assert column(graph, "stock") == [4, -1, 0, 2, 9, 1]  # -1 is a number
    assert column(graph, "flag") == [1, 1, 0, 1, 1, 1]
    assert "6 rows" in graph.notes[0]
    assert "Filled: price (3 missing, median 2), flag (2 missing, median 1)" in graph.notes[0]
    assert graph.columns is not None
    assert graph.columns.medians == {"price": 2.0, "stock": 1.5, "flag": 1.0}
    assert graph.columns.marked == ("price", "flag")


def test_missing_dates_are_filled(tmp_path: Path) -> None:
    nodes = "id,label,added\n1,a,2026-01-01\n2,b,-\n3,a,2026-01-03 12:00\n4,b,0000-00-00\n5,a,2026-01-04T00:00:00\n"
    graph = in_both_ways(tables(tmp_path, nodes, EDGES), dates="added", missing="0000-00-00")
    first = (date(2026, 1, 1) - date(1970, 1, 1)).days
    assert column(graph, "added") == [first, first + 2.5, first + 2.5, first + 2.5, first + 3]
    assert column(graph, "added missing") == [0, 1, 0, 1, 0]
    assert "added (2 missing, median 2026-01-03)" in graph.notes[0]


@given(st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6, width=32)), min_size=1, max_size=9))
@settings(max_examples=60, deadline=None)
def test_medians_are_those_of_numpy(values: list[float | None]) -> None:
    nodes = {"id": list(range(len(values))), "label": ["a"] * len(values), "x": pa.array(values, pa.float32())}
    graph = from_frames(pa.table(nodes), pa.table({"source": [0], "target": [0]}), features=None)
    present = [value for value in values if value is not None]
    if not present:
        assert graph.feature_count == 0
        assert "x (empty)" in graph.notes[0]
        return
    median = float(np.float32(np.median(np.array(present, dtype=np.float64))))
    assert graph.columns is not None
    assert graph.columns.medians == {"x": median}
    assert column(graph, "x") == [median if value is None else value for value in values]


def test_medians_do_not_depend_on_how_many_columns_fit_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = "".join(f"{row},a,{row if row % 3 else ''},{row * row},{'' if row == 7 else -row}\n" for row in range(20))
    tables(tmp_path, f"id,label,x,y,z\n{rows}", EDGES)
    expected = in_both_ways(tmp_path)
    monkeypatch.setattr(gaps, "VALUES", 41)
    assert in_both_ways(tmp_path).sha256 == expected.sha256
    monkeypatch.setattr(gaps, "VALUES", 1_000)
    monkeypatch.setattr(table, "BYTES", 200)
    (tmp_path / "nodes.csv").write_text(f"id,label,x,y,z\n1000,a,1,inf,1\n{rows}1001,a,inf,1,1\n")
    for read in (lambda: read_tables(tmp_path), lambda: import_graph(tmp_path, tmp_path / "refused")):
        with pytest.raises(InputError, match=r"line 23: column 'x' is infinite"):
            read()


def test_numbers_beside_words_are_marked_too(tmp_path: Path) -> None:
    nodes = "id,label,text,price\n1,a,red hat,1\n2,b,red shoe,\n3,a,red hat,3\n"
    graph = in_both_ways(tables(tmp_path, nodes, EDGES), features="text+price")
    assert graph.text is not None
    assert graph.text.beside == (2,)
    assert column(graph, "price missing") == [0, 1, 0]


def test_a_feature_of_the_same_name_is_refused(tmp_path: Path) -> None:
    tables(tmp_path, "id,label,price,price missing\n1,a,,0\n2,b,2,1\n", EDGES)
    with pytest.raises(InputError, match="column 'price missing' has the name of the feature that says where 'price'"):
        read_tables(tmp_path)
    assert read_tables(tmp_path, drop="price missing").feature_count == 2


def test_texts_of_parquet_are_numbers_if_they_are_asked_for(tmp_path: Path) -> None:
    nodes = {"id": [1, 2, 3], "label": ["a", "b", "a"], "price": ["1.5", "unknown", None]}
    tables(tmp_path, nodes, {"source": [1], "target": [2]})
    assert "price (words" in in_both_ways(tmp_path).notes[0]
    assert column(in_both_ways(tmp_path, features="price"), "price missing") == [0, 1, 1]
    with pytest.raises(InputError, match="column 'label' holds the labels"):
        read_tables(tmp_path, features="label")


def test_categories_that_are_missing_are_none(tmp_path: Path) -> None:
    nodes = "id,label,colour\n1,a,red\n2,b,NA\n3,a,\n4,b,-1\n5,b,none\n"
    graph = in_both_ways(tables(tmp_path, nodes, EDGES), categories="colour")
    assert graph.feature_names is not None
    assert graph.feature_names.tolist() == ["colour=-1", "colour=red"]
    assert graph.features.tolist() == [[0, 1], [0, 0], [0, 0], [1, 0], [0, 0]]
    assert column(in_both_ways(tmp_path, categories="colour", known="NA"), "colour=NA") == [0, 1, 0, 0, 0]


def test_whole_numbers_that_are_rounded_are_counted(tmp_path: Path) -> None:
    large = ["9007199254740999", "123456789012345678901234567890", "16777216", "5"]
    rows = "".join(f"{number},a,{number}\n" for number in large)
    graph = in_both_ways(tables(tmp_path, f"id,label,serial\n{rows}", f"source,target\n{large[0]},{large[1]}\n"))
    assert graph.node_ids.tolist() == large
    assert column(graph, "serial") == [float(np.float32(int(number))) for number in large]
    assert "Rounded to 24 bits: 2 of serial" in graph.notes[0]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_numbers_and_dates_that_mean_missing_are_filled(tmp_path: Path, form: str) -> None:
    labels = ["a", "b", "-999", "TBD", "b"]
    prices: list[Any] = [1.5, -999.0, 3.5, 99.5, -999.0]
    heights: list[Any] = [-999, -999, -999, -999, -999]
    days = [date(2026, 1, 1), date(9999, 12, 31), date(2026, 1, 3), date(2026, 1, 4), date(9999, 12, 31)]
    colours = ["red", "tbd", "-999", "-1", "red"]
    if form == "csv":
        rows = zip(range(5), labels, ["1.5", "-999", "3.5", "99.5", "-999.0"], heights, days, colours, strict=True)
        content = "".join(",".join(map(str, row)) + "\n" for row in rows)
        tables(tmp_path, f"id,label,price,height,day,colour\n{content}", "source,target\n0,1\n")
    else:
        columns = {"id": list(range(5)), "label": labels, "price": pa.array(prices, pa.float32())}
        tables(tmp_path, {**columns, "height": heights, "day": days, "colour": colours}, {"source": [0], "target": [1]})
    options = {"missing": "-999+tbd+9999-12-31+99.5", "dates": "day", "categories": "colour"}
    graph = in_both_ways(tmp_path, **options)
    first = (days[0] - date(1970, 1, 1)).days
    assert graph.feature_names is not None
    assert graph.feature_names.tolist() == ["price", "day", "price missing", "day missing", "colour=-1", "colour=red"]
    expected = [
        [1.5, first, 0, 0, 0, 1],
        [2.5, first + 2, 1, 1, 0, 0],
        [3.5, first + 2, 0, 0, 0, 0],
        [2.5, first + 3, 1, 0, 1, 0],
        [2.5, first + 2, 1, 1, 0, 1],
    ]
    assert graph.features.tolist() == expected
    assert named_labels(graph) == ["a", "b", None, None, "b"]
    assert "height (empty)" in graph.notes[0]
    assert "price (3 missing, median 2.5), day (2 missing, median 2026-01-03)" in graph.notes[0]


def test_a_flag_that_means_missing_is_found_in_every_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "BYTES", 60)
    rows = "".join(
        f"{row},a,{flag}\n" for row, flag in enumerate([*["0"] * 9, *["1", "9"] * 9, *["true", "0", "9"] * 9])
    )
    graph = in_both_ways(tables(tmp_path, f"id,label,flag\n{rows}", "source,target\n0,1\n"), missing="9")
    assert column(graph, "flag missing") == [*[0] * 9, *[0, 1] * 9, *[0, 0, 1] * 9]


# Decimal commas


def test_decimal_commas_are_read_on_request(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id;label;price;size\n1;a;19,5;1\n2;b;-0,25;2\n3;a;;1.000\n")
    (tmp_path / "edges.csv").write_text("source;target;weight\n1;2;0,5\n2;3;2\n")
    with pytest.raises(InputError, match=r"edges\.csv, line 2: column 'weight' .*'0,5': decimal=comma reads it"):
        read_tables(tmp_path)
    graph = in_both_ways(tmp_path, decimal="comma")
    assert graph.sha256 == read_tables(tmp_path, decimal=",").sha256
    assert column(graph, "price") == [19.5, -0.25, 9.625]
    assert sorted(set(graph.adjacency.data.tolist())) == [0.5, 2]
    assert "size (numbers, except '1.000' in line 4" in graph.notes[0]  # a thousand, or one?
    assert graph.columns is not None
    assert graph.columns.decimal == "comma"


# Repeated edges


@given(
    rows=st.lists(st.tuples(*[st.integers(0, 3)] * 2, st.sampled_from([0, 0.5, 1, 2, 7])), max_size=14),
    repeated=st.sampled_from(["max", "sum", "count", "last"]),
    weighted=st.booleans(),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_repeated_edges_against_a_plain_loop(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int, float]], repeated: str, weighted: bool
) -> None:
    folder = tables(
        tmp_path_factory.mktemp("graph"),
        "id,label\n0,a\n1,b\n2,a\n3,b\n",
        "source,target,weight\n" + "".join(f"{a},{b},{w}\n" for a, b, w in rows)
        if weighted
        else "source,target\n" + "".join(f"{a},{b}\n" for a, b, _ in rows),
    )
    directed: dict[tuple[int, int], float] = {}
    for source, target, weight in rows:
        weight = weight if weighted and repeated != "count" else 1.0
        before = directed.get((source, target), 0.0)
        new = {"max": max(before, weight), "sum": before + weight, "count": before + 1, "last": weight}[repeated]
        directed[source, target] = new
    expected = np.zeros((4, 4))
    for (source, target), weight in directed.items():
        if source != target:
            expected[source, target] = max(expected[source, target], weight)
            expected[target, source] = max(expected[target, source], weight)
    graph = in_both_ways(folder, repeated=repeated)
    np.testing.assert_array_equal(graph.adjacency.toarray(), expected)
    assert graph.adjacency.nnz == np.count_nonzero(expected)


def test_a_count_reads_no_weight(tmp_path: Path) -> None:
    tables(tmp_path, "id,label\n1,a\n2,b\n", "source,target,weight\n1,2,heavy\n1,2,3\n")
    graph = in_both_ways(tmp_path, repeated="count")
    assert graph.adjacency.toarray().tolist() == [[0, 2], [2, 0]]
    assert "edges.csv: 2 rows; not used: weight." in graph.notes
    assert any("1 duplicate edges were merged (the weight is their number)" in note for note in graph.notes)
    with pytest.raises(InputError, match="repeated=count counts rows and reads no weight"):
        read_tables(tmp_path, repeated="count", weight="weight")


def test_a_sum_beyond_float32_names_the_edges(tmp_path: Path) -> None:
    tables(tmp_path, "id,label\n1,a\n2,b\n", "source,target,weight\n1,2,3e38\n1,2,3e38\n")
    assert in_both_ways(tmp_path).adjacency.max() == np.float32(3e38)
    for read in (
        lambda: read_tables(tmp_path, repeated="sum"),
        lambda: import_graph(f"{tmp_path}:repeated=sum", tmp_path / "no"),
    ):
        with pytest.raises(InputError, match=r"edges\.csv: the weights of one edge add up to 6e\+38, beyond"):
            read()


# Ids that occur several times


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_ids_that_stand_several_times_are_counted_and_named(tmp_path: Path, form: str) -> None:
    ids: list[Any] = [7, 1, 2, 7, 3, 1, 7, 4, 5, 6, 6, 5, 4, 3, 2]
    place = (lambda row: f"line {row + 1}") if form == "csv" else (lambda row: f"row {row}")
    if form == "csv":
        tables(tmp_path, "id,label\n" + "".join(f"{node},a\n" for node in ids), EDGES)
    else:
        tables(tmp_path, {"id": ids, "label": ["a"] * len(ids)}, {"source": [1], "target": [2]})
    listed = ", ".join(f"'{node}' in {place(row)}" for node, row in ((7, 4), (1, 6), (6, 11), (5, 12), (4, 13)))
    message = f"nodes.{form}: 7 node ids occur several times: {listed}, 2 more; a node has one id and one row."
    for read in (lambda: read_tables(tmp_path), lambda: import_graph(tmp_path, tmp_path / "refused")):
        with pytest.raises(InputError) as raised:
            read()
        assert str(raised.value) == f"{tmp_path}/{message}"


def test_ids_that_cleaning_makes_one_are_counted(tmp_path: Path) -> None:
    tables(tmp_path, "id,label\na,x\na ,y\nb,x\nb,y\n", "source,target\na,b\n")
    for read in (lambda: read_tables(tmp_path), lambda: import_graph(tmp_path, tmp_path / "refused")):
        with pytest.raises(InputError, match=r"2 node ids occur several times once cleaned .*: 'a' in line 3, 'b' in"):
            read()


# Edges to nodes that are not there


def test_edges_to_unknown_nodes_are_counted_or_skipped(tmp_path: Path) -> None:
    rows = [(1, 2), (1, "x0"), ("x1", "x2"), *[(f"y{number}", 2) for number in range(5)], (2, 3)]
    edges = "source,target\n" + "".join(f"{a},{b}\n" for a, b in rows)
    tables(tmp_path, "id,label,f\n1,a,1\n2,b,2\n3,a,3\n", edges)
    listed = "line 3 'x0', line 4 'x1', line 5 'y0', line 6 'y1', line 7 'y2', 2 more"
    message = f"edges.csv: 7 edges with an end that is not among the nodes ({listed}): add the nodes"
    for read in (lambda: read_tables(tmp_path), lambda: import_graph(tmp_path, tmp_path / "refused")):
        with pytest.raises(InputError) as raised:
            read()
        assert message in str(raised.value)
    graph = in_both_ways(tmp_path, unknown_ends="skip")
    assert graph.edge_count == 2
    assert f"edges.csv: 9 rows; 7 skipped with an end that is not among the nodes ({listed})." in graph.notes


# Labels


def test_spellings_are_one_class_on_request(tmp_path: Path) -> None:
    labels = ["shoes", "Shoes", "SHOES ", "shoes", "ice  cream", "Ice cream", "ice cream", "ice cream", "hat", "na"]
    rows = "".join(f"{row},{label}\n" for row, label in enumerate(labels))
    tables(tmp_path, f"id,label\n{rows}", "source,target\n0,1\n")
    assert len(in_both_ways(tmp_path).class_names) == 7
    graph = in_both_ways(tmp_path, fold="yes")
    assert named_labels(graph) == ["shoes"] * 4 + ["ice cream"] * 4 + ["hat", None]
    assert (
        "Spellings that are one class (fold=yes): 'shoes' ← 'Shoes' (1), 'SHOES' (1); 'ice cream' ← 'ice  cream' (1), "
        "'Ice cream' (1)." in graph.notes
    )
    assert graph.columns is not None
    assert graph.columns.fold


@given(st.lists(st.sampled_from(["é", "E\u0301", "e", "E ", "f", "F", "ff", " f f", "F  f"]), min_size=1, max_size=20))
@settings(max_examples=60, deadline=None)
def test_the_most_frequent_spelling_names_the_class(labels: list[str]) -> None:
    nodes = pa.table({"id": list(range(len(labels))), "label": labels})
    graph = from_frames(nodes, pa.table({"source": [0], "target": [0]}), fold=True)
    key = {"é": "e", "É": "e", "e": "e", "E": "e", "f": "f", "F": "f", **dict.fromkeys(["ff", "f f", "F  f"], "ff")}
    cleaned = [{"E\u0301": "É"}.get(label, label.strip()) for label in labels]
    for own in set(key.values()):
        spelled = [name for name in cleaned if key[name] == own]
        if spelled:
            names = {named_labels(graph)[row] for row, name in enumerate(cleaned) if key[name] == own}
            assert names == {Counter(spelled).most_common(1)[0][0]}


# Options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"repeated": "summ"}, r"repeated=summ is no value of this option: did you mean 'sum'\?"),
        ({"unknown_ends": "drop"}, r"unknown_ends=drop is no value of this option: there are refuse, skip"),
        ({"decimal": ";"}, r"decimal=; is no value of this option"),
        ({"fold": "case"}, r"fold=case is no value of this option: there are no, yes"),
        ({"missing": "tbd+NA", "known": ["na"]}, r"'na' is in both missing= and known="),
    ],
)
def test_values_of_options_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TableColumns(**options)
    with pytest.raises(InputError, match=message):
        TableColumns().with_options(options)
