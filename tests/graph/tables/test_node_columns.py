"""What becomes of each column of a table of nodes."""

import datetime
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import sparse

from graphfcl import Graph, InputError, TableColumns, read_tables
from graphfcl.graph import TextSettings, TextWeights

SHOP = """asin,category,title,price,colour,added,category_id
p1,shoes,red running shoe,10,red,2026-01-01,7
p2,shoes,blue shoe,20,blue,2026-01-02,7
p3,hats,green hat,30,red,2026-01-03,9
p4,,a hat,40,,2026-01-04,9
"""
NAMES = TableColumns(id="asin", label="category")


def shop(folder: Path, nodes: str | dict[str, Any] = SHOP) -> Path:
    if isinstance(nodes, str):
        (folder / "nodes.csv").write_text(nodes)
    else:
        parquet.write_table(pa.table(nodes), folder / "nodes.parquet")
    (folder / "edges.csv").write_text("source,target\np1,p2\np3,p4\n")
    return folder


def read(folder: Path, **options: Any) -> Graph:
    return read_tables(folder, TableColumns(id="asin", label="category", **options))


def names(graph: Graph) -> list[str]:
    assert graph.feature_names is not None
    return graph.feature_names.tolist()


def test_numbers_are_used_and_the_note_says_what_is_not(tmp_path: Path) -> None:
    graph = read(shop(tmp_path))
    assert names(graph) == ["price", "category_id"]
    assert graph.notes[0] == (
        "nodes.csv: 4 rows; ids are asin, labels category; features are numbers price, category_id. Not used: title "
        "(words: text=title or categories=title uses them), colour (words: text=colour or categories=colour uses "
        "them), added (dates: dates=added makes numbers of them)."
    )


@pytest.mark.parametrize(
    ("options", "features"),
    [
        ({"features": "price"}, ["price"]),
        ({"features": ["price", "added"]}, ["price", "added"]),
        ({"features": "price,added"}, ["price", "added"]),
        ({"features": "price, added+category_id"}, ["price", "added", "category_id"]),
        ({"drop": "category_id"}, ["price"]),
        ({"drop": "category_id+price", "categories": "colour"}, ["colour=blue", "colour=red"]),
        (
            {"features": "price", "dates": "added", "categories": ["colour"]},
            ["price", "added", "colour=blue", "colour=red"],
        ),
        ({"text": "title"}, ["blue", "green", "hat", "red", "running", "shoe"]),
        ({"text": "colour+title", "features": "price"}, ["blue", "green", "hat", "red", "running", "shoe", "price"]),
    ],
)
def test_columns_that_are_asked_for(tmp_path: Path, options: dict[str, Any], features: list[str]) -> None:
    assert names(read(shop(tmp_path), **options)) == features


def test_a_column_whose_name_has_a_separator_is_taken_whole(tmp_path: Path) -> None:
    shop(tmp_path, 'asin,category,"size, cm",a+b,size\np1,x,1,2,3\np2,y,1,2,3\np3,x,1,2,3\np4,y,1,2,3\n')
    assert names(read(tmp_path, features="size, cm")) == ["size, cm"]
    assert names(read(tmp_path, features="a+b,size")) == ["a+b", "size"]


def test_missing_labels_are_listed_with_commas_too(tmp_path: Path) -> None:
    shop(tmp_path, "asin,category,price\np1,tbd,1\np2,NA,2\np3,x,3\np4,y,4\n")
    assert read(tmp_path, missing="tbd,x").class_names == ("y",)


def test_values_of_categories_and_dates(tmp_path: Path) -> None:
    graph = read(shop(tmp_path), features="price", categories="colour", dates="added")
    day = (datetime.date(2026, 1, 1) - datetime.date(1970, 1, 1)).days
    expected = [[10, day, 0, 1], [20, day + 1, 1, 0], [30, day + 2, 0, 1], [40, day + 3, 0, 0]]
    assert graph.features.tolist() == expected


def test_dates_of_many_forms(tmp_path: Path) -> None:
    day = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
    forms: tuple[list[Any], ...] = (
        ["2026-01-01 12:00", "2026-01-01T12:00:00"],
        ["2026-01-01T12:00:00Z", "2026-01-01T13:00:00+01:00"],
        [day, day],
    )
    for number, column in enumerate(forms):
        folder = tmp_path / str(number)
        folder.mkdir()
        shop(folder, {"asin": ["p1", "p2", "p3", "p4"], "category": ["a"] * 4, "when": column * 2})
        assert read(folder, dates="when").features.tolist() == [[20454.5]] * 4


def test_numbers_beside_words_are_as_large_as_the_words(tmp_path: Path) -> None:
    graph = read(shop(tmp_path), text="title", features="price+category_id", min_nodes=1)
    assert graph.text == TextSettings(1, (2,))
    assert sparse.issparse(graph.features)
    seen = TextWeights.fit(graph.features, 1, (2,)).apply(graph.features).toarray()
    np.testing.assert_allclose(np.linalg.norm(seen[:, :6], axis=1), 1, rtol=1e-6)
    prices, ids = np.array([10, 20, 30, 40]), np.array([7, 7, 9, 9])
    for column, values in ((6, prices), (7, ids)):
        expected = (values - values.mean()) / values.std() / np.sqrt(2)
        np.testing.assert_allclose(seen[:, column], expected, rtol=1e-6)
    assert np.mean((seen[:, 6:] ** 2).sum(axis=1)) == pytest.approx(1)


def test_vectors_of_a_text_model(tmp_path: Path) -> None:
    vectors = np.arange(12, dtype=np.float32).reshape(4, 3)
    columns = {"asin": ["p1", "p2", "p3", "p4"], "category": list("abab"), "text": ["red", "red", "hat", "hat"]}
    fixed = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 3)
    shop(tmp_path, {**columns, "inner": vectors.tolist(), "fixed": fixed})
    np.save(tmp_path / "outer.npy", vectors * 2)
    beside = read(tmp_path, vectors="inner+outer.npy")
    assert names(beside)[-6:] == ["inner_0", "inner_1", "inner_2", "outer_0", "outer_1", "outer_2"]
    assert beside.text == TextSettings(2, (3, 3))
    np.testing.assert_array_equal(beside.features.toarray()[:, -6:], np.hstack([vectors, vectors * 2]))
    instead = read(tmp_path, vectors="fixed", drop="text")
    assert instead.text is None
    np.testing.assert_array_equal(instead.features, vectors)
    assert "inner (lists of numbers: vectors=inner uses them)" in instead.notes[0]


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        ([[1, 2], [1, 2], [1], [1, 2]], r"row 3: column 'inner' has a list of 1 numbers, all others have 2"),
        ([[1], None, [1], [1]], r"row 2: column 'inner' has no list"),
        ([[1.0], [float("nan")], [1.0], [1.0]], r"row 2: column 'inner' is NaN"),
        ([["a"], ["b"], ["c"], ["d"]], r"column 'inner' does not hold lists of numbers"),
        (["a", "b", "c", "d"], r"column 'inner' does not hold lists of numbers"),
    ],
)
def test_lists_that_are_no_vectors_are_refused(tmp_path: Path, lists: Any, message: str) -> None:
    shop(tmp_path, {"asin": ["p1", "p2", "p3", "p4"], "category": ["a"] * 4, "inner": lists})
    with pytest.raises(InputError, match=message):
        read(tmp_path, vectors="inner")


class Evil:
    def __reduce__(self) -> Any:
        return (print, ("unpickled",))


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((3, 2)), r"outer\.npy has 3 rows for 4 nodes"),
        (np.zeros(4), r"outer\.npy does not hold a matrix of numbers"),
        (np.array([["a"]] * 4), r"outer\.npy does not hold a matrix of numbers"),
        (np.array([[1], [np.inf], [1], [1]]), r"outer\.npy, row 2: a number is NaN or infinite"),
        (np.array([[Evil()]] * 4, dtype=object), r"outer\.npy is not an array from numpy\.save, or a pickled one"),
        (None, r"outer\.npy does not exist"),
    ],
)
def test_files_that_are_no_vectors_are_refused(
    tmp_path: Path, array: Any, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shop(tmp_path)
    if array is not None:
        np.save(tmp_path / "outer.npy", array, allow_pickle=True)
    with pytest.raises(InputError, match=message):
        read(tmp_path, vectors="outer.npy")
    assert "unpickled" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"features": "prise"}, r"no column 'prise', which features= names: did you mean 'price'"),
        ({"drop": "x"}, r"no column 'x', which drop= names"),
        ({"features": "title"}, r"column 'title' holds words: use text=title or categories=title"),
        ({"features": "asin"}, r"column 'asin' holds the ids: leave it out of features="),
        ({"drop": "price", "features": "price"}, r"column 'price' is in both features= and drop="),
        ({"dates": "added", "categories": "added"}, r"'added' is in both categories= and dates="),
        ({"dates": "colour"}, r"column 'colour' does not hold dates as 2026-01-31"),
        ({"vectors": "price"}, r"column 'price' does not hold lists of numbers"),
        ({"text": "body"}, r"no column 'body', which text= names"),
    ],
)
def test_options_that_do_not_fit_are_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(shop(tmp_path), **options)


def test_a_word_among_numbers_is_named_with_its_line(tmp_path: Path) -> None:
    shop(tmp_path, "asin,category,price\np1,a,1\np2,a,cheap\np3,b,\np4,b,2\n")
    assert "price (numbers, except 'cheap' in line 3: fix it" in read(tmp_path).notes[0]
    with pytest.raises(InputError, match=r"line 3: column 'price' holds 'cheap', which is no number"):
        read(tmp_path, features="price")


def test_a_decimal_comma_is_named(tmp_path: Path) -> None:
    for first in ("19,50", "3"):
        shop(
            tmp_path, f"asin;category;price;tags\np1;a;{first};red,blue\np2;a;7,25;red\np3;b;1,00;blue\np4;b;2,00;red\n"
        )
        line, value = (2, "19,50") if first == "19,50" else (3, "7,25")
        note = read(tmp_path).notes[0]
        assert f"price ('{value}' in line {line} has a decimal comma: decimal=comma reads such numbers)" in note
        assert "tags (words:" in note
        with pytest.raises(
            InputError, match=f"line {line}: column 'price' holds '{value}' with a decimal comma: use decimal=comma"
        ):
            read(tmp_path, features="price")


@pytest.mark.parametrize("word", ["1,200", "-1,200", "1,234,567"])
def test_a_comma_may_separate_thousands(tmp_path: Path, word: str) -> None:
    shop(tmp_path, f"asin;category;price\np1;a;{word}\np2;a;2,500\np3;b;3,000\np4;b;4,000\n")
    fix = "the comma may separate thousands (write it without) or be a decimal comma (decimal=comma)"
    assert f"price (numbers, except '{word}' in line 2: {fix})" in read(tmp_path).notes[0]
    with pytest.raises(InputError, match=re.escape(f"column 'price' holds '{word}', which is no number: {fix}.")):
        read(tmp_path, features="price")
    (tmp_path / "edges.csv").write_text(f"source;target;weight\np1;p2;{word}\n")
    with pytest.raises(InputError, match=re.escape(f"does not hold a number but '{word}': {fix}.")):
        read(tmp_path)


def test_a_column_with_too_many_values_is_no_category(tmp_path: Path) -> None:
    rows = "".join(f"p{number},a,v{number}\n" for number in range(1_100))
    with pytest.raises(InputError, match="more than 1,000 different values"):
        read(shop(tmp_path, f"asin,category,kind\n{rows}"), categories="kind")


def test_a_column_that_determines_the_label_is_named(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    classes = random.integers(0, 4, 200)
    lines = [
        f"p{number},{'' if number % 10 == 0 else f'c{kind}'},{kind * 10 + number % 2},{random.integers(0, 9)},{number}"
        for number, kind in enumerate(classes.tolist())
    ]
    shop(tmp_path, "asin,category,category_id,size,serial\n" + "\n".join(lines) + "\n")
    warnings = [note for note in read(tmp_path).notes if note.startswith("Warning")]
    assert len(warnings) == 1
    assert "column 'category_id' nearly determines the label (100.0% of" in warnings[0]
    assert "drop=category_id" in warnings[0]
    assert not any("Warning" in note for note in read(tmp_path, drop="category_id").notes)


def test_a_column_gives_labels_away_however_they_are_spelled(tmp_path: Path) -> None:
    lines = [f"p{number},{'Cc'[number % 3 == 0]}{number % 4},{number % 4}" for number in range(120)]
    shop(tmp_path, "asin,category,category_id\n" + "\n".join(lines) + "\n")
    assert any("'category_id' nearly determines the label (100.0%" in note for note in read(tmp_path).notes)


@pytest.mark.parametrize(("suffix", "separator"), [("csv", ";"), ("csv", "\t"), ("tsv", "\t")])
def test_other_separators(tmp_path: Path, suffix: str, separator: str) -> None:
    (tmp_path / f"nodes.{suffix}").write_text('id;label;"a,b"\n1;x;0.5\n2;y;1\n'.replace(";", separator))
    (tmp_path / f"edges.{suffix}").write_text("source;target\n1;2\n".replace(";", separator))
    graph = read_tables(tmp_path)
    assert names(graph) == ["a,b"]
    assert graph.edge_count == 1


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_tables_of_two_bytes_a_letter_are_named_so(tmp_path: Path, suffix: str, encoding: str) -> None:
    (tmp_path / f"nodes.{suffix}").write_bytes("\ufeffid\tlabel\n1\tx\n".encode(encoding))
    (tmp_path / "edges.csv").write_text("source,target\n")
    with pytest.raises(InputError, match=rf"nodes\.{suffix} is UTF-16: write it as UTF-8\."):
        read_tables(tmp_path)


@pytest.mark.parametrize(
    ("head", "example"), [("ID,Label", "id=ID"), ("sku,Label", "id=NAME"), ("id,Class", "label=Class")]
)
def test_a_missing_column_is_shown_how_to_name(tmp_path: Path, head: str, example: str) -> None:
    (tmp_path / "nodes.csv").write_text(f"{head}\n1,x\n")
    (tmp_path / "edges.csv").write_text("source,target\n")
    with pytest.raises(InputError, match=f"or say which one it is, as {example}; it has {head.replace(',', ', ')}"):
        read_tables(tmp_path)


@pytest.mark.parametrize(
    ("columns", "options", "name"),
    [
        ({"c": ["1", "2", "1"], "c=1": [1, 2, 3]}, {"categories": "c"}, "c=1"),
        ({"a": ["b=1", "", ""], "a=b": ["1", "", ""]}, {"categories": "a,a=b"}, "a=b=1"),
        ({"v": [[1.0, 2.0]] * 3, "v_1": [1, 2, 3]}, {"vectors": "v", "features": "v_1"}, "v_1"),
    ],
)
def test_two_features_of_one_name_are_refused(
    tmp_path: Path, columns: dict[str, Any], options: dict[str, str], name: str
) -> None:
    folder = shop(tmp_path, {"asin": ["p1", "p2", "p3"], "category": ["x", "y", "x"], **columns})
    (folder / "edges.csv").write_text("source,target\np1,p2\n")
    with pytest.raises(InputError, match=rf"nodes\.parquet: two columns give the feature '{name}': rename one of them"):
        read(folder, **options)


def test_a_column_may_be_called_like_a_word(tmp_path: Path) -> None:
    folder = shop(tmp_path, "asin,category,title,red\np1,x,red shoe,1\np2,y,red hat,2\np3,x,hat,3\np4,x,shoe,3\n")
    assert names(read(folder, text="title", features="red")).count("red") == 2
