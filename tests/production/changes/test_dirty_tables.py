"""Later tables with missing values and other spellings are read as the tables of the fit, in memory and on disk."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from graphfcl import GraphClassifier, GraphfclWarning, InputError, from_frames, import_graph, read_tables
from graphfcl.production import graph_at, read_nodes
from graphfcl.production.graph.growing_graph import GrowingGraph
from tests.cli.command import graphfcl_inside
from tests.production.models import graph_in_memory

OPTIONS = "decimal=comma,dates=added,features=price+stock,missing=tbd+-999,fold=yes,repeated=count,unknown_ends=skip"
READ: dict[str, Any] = dict(pair.split("=") for pair in OPTIONS.split(","))
HEAD = "id;label;price;stock;added"
NEW = "n1;;7,5;-999;2026-01-09\nn2;;n/a;3;-999\n"


def write_shop(folder: Path) -> Path:
    """60 nodes of three classes with gaps in two of three columns."""
    random = np.random.default_rng(1)
    rows, edges = [], []
    for number in range(60):
        kind, blank = number % 3, number % 7 == 0
        label = ["shoes", "hats", "rings"][kind] if number % 10 else ["SHOES", "Hats ", "rings"][kind]
        price = "" if blank else f"{10 * kind + random.random():.3f}".replace(".", ",")
        rows.append(f"p{number};{label};{price};{number % 5};{'-' if number == 9 else f'2026-01-{1 + number % 28:02}'}")
        edges += [f"p{number};p{(number + step) % 60}" for step in (3, 6, 3)]
    (folder / "nodes.csv").write_text("\n".join([HEAD, *rows, ""]))
    (folder / "edges.csv").write_text("\n".join(["source;target", *edges, ""]))
    return folder


@pytest.fixture(scope="module", params=["memory", "disk"])
def fitted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables in ``shop`` and a model of them in ``m``, whose graph is in memory or a graph folder."""
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "shop").mkdir()
    work: list[Any] = []
    graph: Any = f"{write_shop(folder / 'shop')}:{OPTIONS}"
    if request.param == "disk":
        done = graphfcl_inside("data", "import", "--graph", graph, "--out", folder / "big")
        assert done.code == 0, done.err
        graph, work = folder / "big", ["--work", folder / "work"]
    done = graphfcl_inside(
        "fit", "--graph", graph, "--model", folder / "m", "--method", "sgc-ridge", "--hide-classes", "rings", *work
    )
    assert done.code == 0, done.err
    assert "Filled: price (9 missing" in done.out
    assert "edges.csv: 180 rows." in done.out
    assert "'shoes' ← 'SHOES' (2)" in done.out
    return folder


def test_missing_values_of_later_nodes_are_filled_as_at_the_fit(fitted: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text(f"{HEAD}\n{NEW}")
    model = GraphClassifier.load(fitted / "m", version=1)
    columns = model.configuration.columns
    assert columns is not None
    assert (columns.decimal, columns.fold, columns.marked) == ("comma", True, ("price", "added"))
    notes: list[str] = []
    ids, features, _ = read_nodes(tmp_path / "new.csv", model.graph_, columns, notes.append)
    assert ids == ["n1", "n2"]
    shop = read_tables(fitted / "shop", **READ)
    assert shop.feature_names is not None
    assert shop.feature_names.tolist() == ["price", "stock", "added", "price missing", "added missing"]
    medians = [float(np.median(shop.features[:, place][~gaps])) for place, gaps in (
        (0, shop.features[:, 3] == 1), (1, np.zeros(60, bool)), (2, shop.features[:, 4] == 1),
    )]  # fmt: skip
    stored = [columns.medians[name] for name in ("price", "stock", "added")]
    np.testing.assert_allclose(stored, medians, rtol=1e-6)
    day = 20_462.0  # 2026-01-09
    expected = [[7.5, medians[1], day, 0, 0], [medians[0], 3, medians[2], 1, 1]]
    np.testing.assert_allclose(np.asarray(features), expected, rtol=1e-6)
    assert len(notes) == 3
    assert "1 missing value of stock filled with the median of the fit, 2; the fit had no missing values" in notes[1]
    assert "of price filled with the median of the fit" in notes[0]
    assert "'price missing' marks them" in notes[0]


def test_they_are_after_saving_too(fitted: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text(f"{HEAD}\n{NEW}")
    (tmp_path / "e.csv").write_text("source;target\nn1;p0\nn2;p1\n")
    grown = graphfcl_inside(
        "grow", "--model", fitted / "m", "--nodes", tmp_path / "new.csv", "--edges", tmp_path / "e.csv"
    )
    assert grown.code == 0, grown.err
    assert "1 missing value of stock filled" in grown.err
    model = GraphClassifier.load(fitted / "m")
    assert model.predict(["n1", "n2"]).size == 2
    with pytest.raises(InputError, match=r"row 1: column 'price' is infinite"):
        model.grow(nodes=pa.table({"id": ["n3"], "price": [np.inf], "stock": [1], "added": ["2026-01-01"]}))
    with pytest.warns(GraphfclWarning, match="1 missing value of added filled with the median of the fit, 2026-01"):
        model.grow(nodes=pa.table({"id": ["n3"], "price": [1.0], "stock": [1], "added": pa.nulls(1, pa.string())}))


def test_numbers_and_texts_of_pandas_are_read_as_in_a_file(fitted: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed, and nothing here needs it")
    model = GraphClassifier.load(fitted / "m", version=1)
    mixed = pandas.DataFrame({"id": ["m1", 2], "price": ["7,5", -999], "stock": [3, "4"], "added": ["2026-01-09"] * 2})
    with pytest.warns(GraphfclWarning, match="1 missing value of price filled"):
        model.grow(nodes=mixed)
    features = model.graph_.features_at(model.graph_.rows_of_ids(["m1", "2"]))
    assert np.asarray(features)[:, [0, 1, 3]].tolist()[0] == [7.5, 3, 0]
    assert np.asarray(features)[1, [1, 3]].tolist() == [4, 1]
    with pytest.raises(InputError, match=r"nodes, row 2: column 'stock' does not hold a number but 'tbc'"):
        model.grow(nodes=mixed.assign(id=["m3", "m4"], stock=pandas.Series([3, "tbc"], dtype=object)))


def test_edges_to_unknown_nodes_are_skipped_as_at_the_fit(fitted: Path, tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("source;target\np0;p1\nx0;p1\nx1;x2\n" + "p1;y\n" * 5)
    more = ["--model", fitted / "m", "--edges", tmp_path / "e.csv", "--on-existing", "skip"]
    refused = graphfcl_inside("grow", *more, "--unknown-ends", "refuse")
    assert refused.code == 2
    assert "an edge leads to node 'x0' (and 1 more), which is not in the graph" in refused.err
    listed = "line 3 'x0', line 4 'x1', line 5 'y', line 6 'y', line 7 'y', 2 more"
    done = graphfcl_inside("grow", *more)
    assert done.code == 0, done.err
    assert "skipped 7 edges to unknown nodes" in done.out
    assert f"7 edges skipped with an end that is not in the graph ({listed})." in " ".join(done.out.split())
    model = GraphClassifier.load(fitted / "m")
    edges = model.graph_.edge_count
    model.grow(edges=pa.table({"source": ["p2", "p3"], "target": ["nobody", "p17"]}))
    assert model.graph_.edge_count == edges + 1
    model.grow(edges=(["no", "p4"], ["p5", "none"]))
    assert model.graph_.edge_count == edges + 1
    named = [{"node": "no", "place": "edge 1"}, {"node": "none", "place": "edge 2"}]
    assert (model.history[-1]["unknown_edges"], model.history[-1]["unknown_ends"]) == (2, named)
    weights = np.array([5.0, 7.0])
    model.grow(edges=(["no", "p4"], ["p5", "p19"], weights))
    ends = model.graph_.rows_of_ends(["p4"], ["p19"])
    assert model.graph_.weights_between(ends.min(axis=0), ends.max(axis=0)).tolist() == [7]
    with pytest.raises(InputError, match=r"unknown_ends is 'drop': take refuse or skip"):
        model.grow(edges=(["no"], ["p5"]), unknown_ends="drop")
    with pytest.raises(InputError, match="which is not in the graph"):
        model.grow(edges=(["no"], ["p5"]), unknown_ends="refuse")


def test_other_spellings_of_a_class_are_that_class(fitted: Path, tmp_path: Path) -> None:
    model = GraphClassifier.load(fitted / "m", version=1)
    assert set(model.classes_) == {"hats", "shoes"}
    rings = {"id": ["p2", "p5", "p8", "p11"], "label": ["Rings", "rings ", "rings", "TBD"]}
    model.learn(pa.table(rings))
    assert set(model.classes_) == {"hats", "shoes", "rings"}
    model.learn({" RÍNGS": ["p14"]})
    assert len(model.classes_) == 3
    assert model.score(["p14", "p0"], ["Rings", "Shoes"]) == model.score(["p14", "p0"], ["rings", "shoes"])
    with pytest.raises(InputError, match="are one class once cleaned: join their nodes"):
        model.learn({"Belts": ["p17"], "belts": ["p20"]})
    with pytest.raises(InputError, match="there is a class 'hats' already"):
        model.rename("rings", "HATS")
    model.rename("RINGS", "Rings")
    assert "Rings" in set(model.classes_)
    model.save(tmp_path / "m")
    again = GraphClassifier.load(tmp_path / "m")
    again.learn({"shoes ": ["p17"]}, on_conflict="keep")
    assert len(again.classes_) == 3


def test_a_refit_on_new_tables_fills_as_they_do(fitted: Path, tmp_path: Path) -> None:
    model = GraphClassifier.load(fitted / "m", version=1)
    if model.has_graph_folder:
        pytest.skip("the same for both: the columns are those of the graph that is brought")
    content = (write_shop(tmp_path) / "nodes.csv").read_text().splitlines()
    content[5] = ";".join([*content[5].split(";")[:3], "", "2026-01-01"])  # now stock lacks a value, too
    (tmp_path / "nodes.csv").write_text("\n".join([*content, ""]))
    model.refit(read_tables(tmp_path, **READ), anyway=True)
    columns = model.configuration.columns
    assert columns is not None
    assert columns.marked == ("price", "stock", "added")
    (tmp_path / "new.csv").write_text(f"{HEAD}\n{NEW}")
    with pytest.warns(GraphfclWarning, match="'stock missing' marks them"):
        model.grow(nodes=read_nodes(tmp_path / "new.csv", model.graph_, columns))
    names = graph_in_memory(model).feature_names
    assert names is not None
    assert graph_in_memory(model).features[-2:, names.tolist().index("stock missing")].tolist() == [1, 0]


def test_a_refit_reads_tables_with_the_options_of_the_fit(fitted: Path, tmp_path: Path) -> None:
    model = GraphClassifier.load(fitted / "m", version=1)
    if model.has_graph_folder:
        pytest.skip("a graph folder is read already")
    model.save(tmp_path / "m")
    write_shop(tmp_path)
    refit = ["refit", "--model", tmp_path / "m", "--anyway", "--graph"]
    done = graphfcl_inside(*refit, tmp_path)
    assert done.code == 0, done.err
    assert GraphClassifier.load(tmp_path / "m").configuration.columns == model.configuration.columns
    done = graphfcl_inside(*refit, f"{tmp_path}:features=price,repeated=sum")
    assert done.code == 0, done.err
    columns = GraphClassifier.load(tmp_path / "m").configuration.columns
    assert columns is not None
    assert (columns.features, columns.repeated, columns.dates, columns.fold) == (("price",), "sum", ("added",), True)


def test_a_refit_on_a_graph_that_was_not_folded_goes_on_folding(fitted: Path, tmp_path: Path) -> None:
    model = GraphClassifier.load(fitted / "m", version=1)
    options = {name: value for name, value in READ.items() if name != "fold"}
    graph: Any = read_tables(fitted / "shop", **options)
    if model.has_graph_folder:
        graph = import_graph(f"{fitted / 'shop'}:{OPTIONS.replace(',fold=yes', '')}", tmp_path / "again")
        graph = graph_at(tmp_path / "again")
    assert len(graph.class_names) == 5
    model.refit(graph, anyway=True)
    assert model.configuration.fold
    assert set(model.classes_) == {"shoes", "hats", "rings"}
    model.learn({"SHOES": ["p2"]}, on_conflict="replace")
    assert len(model.classes_) == 3


def test_a_column_named_like_a_category_does_not_overwrite_it() -> None:
    nodes = pa.table({"id": ["a", "b"], "label": ["x", "y"], "c": ["5", "6"], "c=5": [7.0, 8.0]})
    edges = pa.table({"source": ["a"], "target": ["b"]})
    with pytest.raises(InputError, match="nodes: two columns give the feature 'c=5': rename one of them"):
        from_frames(nodes, edges, categories="c", features="c=5")
    graph = from_frames(nodes, edges, categories="c", drop="c=5")
    new = pa.table({"id": ["n"], "c": ["5"], "c=5": [9.0]})
    assert np.asarray(read_nodes(new, GrowingGraph.of(graph), graph.columns)[1]).tolist() == [[1, 0]]
    plain = from_frames(nodes.drop_columns(["c=5"]), edges, categories="c")
    with pytest.raises(InputError, match="nodes: two columns give the feature 'c=5': rename one of them"):
        read_nodes(new, GrowingGraph.of(plain), plain.columns)
