"""The statistics of a block and of the tables: differences, tests, winners."""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

from graphfcl.experiments import Cell
from graphfcl.report import (
    Block,
    Findings,
    Row,
    claims,
    claims_by_dataset,
    latex,
    lead_tables,
    markdown,
    result_table,
    write_page,
)
from graphfcl.report.comparison import further_titles
from tests.methods.test_checks import GRAPH
from tests.metrics.test_comparison import corrected_test
from tests.report.folders import RULES, fake, printed_tables, store, stored_result


def test_bold_is_only_what_is_surely_ahead() -> None:
    clear = {
        "hag-meta": [0.80, 0.81, 0.79, 0.80, 0.80],
        "cec": [0.60, 0.62, 0.58, 0.61, 0.60],
        "gpn": [0.50, 0.49, 0.53, 0.50, 0.51],
    }
    upper = {"joint": [0.95, 0.96, 0.95, 0.94, 0.95]}
    assert fake(clear).winner == "hag-meta"
    assert fake(clear | upper).winner == "hag-meta", "joint takes no part"
    unsure = {**clear, "cec": [0.85, 0.70, 0.82, 0.69, 0.80]}
    assert fake(unsure).winner is None
    bold = result_table(fake(clear), {})
    assert "**hag-meta**" in markdown(bold)
    assert r"\textbf{hag-meta}" in latex(bold)
    assert "ahead of every other row on average, each raw p < 0.05" in bold.notes[-1]
    plain = result_table(fake(unsure), {})
    assert "**" not in markdown(plain)
    assert "textbf" not in latex(plain)
    below = result_table(fake(clear | upper), {})
    assert "ahead of every other row without a mark" in below.notes[-1], "joint is above it"


def test_a_control_is_marked_and_takes_no_part() -> None:
    fair = {"hag-meta": [0.80, 0.81, 0.79, 0.80, 0.80], "cec": [0.60, 0.62, 0.58, 0.61, 0.60]}
    block = fake(fair | {"closed-set-control": [0.95, 0.96, 0.95, 0.94, 0.95]})
    assert block.winner == "hag-meta"
    assert set(block.leads("average")) == {"hag-meta", "cec"}
    assert block.comparisons["closed-set-control"].adjusted is None, "a difference, but no test"
    table = result_table(block, {})
    assert "closed-set-control‖" in markdown(table)
    assert r"closed-set-control$\Vert$" in latex(table)
    assert any(note.startswith("‖ a control") for note in table.notes)


def test_figures_are_numbers() -> None:
    block = fake({"hag-meta": [0.8, 0.7, 0.9, 0.75, 0.85], "cec": [0.6, 0.7, 0.65, 0.65, 0.65]})
    ours, theirs = block.rows
    assert block.reference is ours
    assert "hag-meta" not in block.comparisons
    comparison = block.comparisons["cec"]
    assert comparison.difference.mean == pytest.approx(15)
    assert comparison.adjusted is not None
    assert (block.improvement(theirs, "pd"), block.improvement(theirs, "rpd")) == (0.0, 0.0), "the same in all"
    average = theirs.summary("average")
    assert average is not None
    assert average.mean == pytest.approx(65)
    table = result_table(block, {"hag-meta": 1.0, "cec": 2.0})
    assert [row[-1] for row in table.rows] == ["1.00", "2.00"]
    assert not further_titles(block)


def test_rows_without_a_common_seed_are_shown_without_comparison() -> None:
    block = fake({"hag-meta": [0.8, 0.7], "cec": [0.6, 0.7]})
    apart = Row("cec", {7: block.rows[1].results[0]})
    apart_block = Block(block.grid, "debian", block.protocol, (block.rows[0], apart), (), 0)
    lines = result_table(apart_block, {}).rows
    assert lines[1][-3:] == ("", "", "too few seeds")


def test_the_reference_plays_by_the_rules() -> None:
    assert fake({"cec": [0.5, 0.6], "gpn": [0.4, 0.5], "joint": [0.9, 0.9]}).reference.name == "cec"


def test_a_lead_that_only_student_s_test_is_sure_of_is_not_bold() -> None:
    """Differences 1 to 5 points: p is 0.013 without the correction for resampling, 0.060 with it."""
    ahead = fake({"hag-meta": [0.71, 0.72, 0.73, 0.74, 0.75], "cec": [0.70] * 5})
    assert ahead.comparisons["cec"].adjusted == pytest.approx(0.0602, abs=1e-4)
    assert ahead.winner is None
    assert not ahead.too_few_seeds


def test_four_seeds_have_no_winner_and_a_fifth_makes_one() -> None:
    five = {"hag-meta": [0.80, 0.81, 0.79, 0.80, 0.80], "cec": [0.60, 0.62, 0.58, 0.61, 0.60]}
    four = {name: values[:4] for name, values in five.items()}
    assert (fake(five).winner, fake(five).too_few_seeds) == ("hag-meta", False)
    assert (fake(four).winner, fake(four).too_few_seeds) == (None, True)
    unequal = fake({**five, "gpn": [0.50, 0.49, 0.53, 0.50]})
    assert unequal.winner is None, "ahead of every other row, but of one over four seeds"
    assert [unequal.comparisons[name].adjusted is None for name in ("cec", "gpn")] == [False, True]
    apart = Row("gpn", {seed + 5: result for seed, result in unequal.rows[2].results.items()})
    disjoint = Block(unequal.grid, "debian", unequal.protocol, (*unequal.rows[:2], apart), (), 0)
    assert (disjoint.winner, disjoint.too_few_seeds) == (None, True), "and no seed in common with one"


# Through the real report


FIGURES = {
    "hag-meta": [0.71, 0.75, 0.72, 0.79, 0.74, 0.73],
    "cec": [0.66, 0.74, 0.66, 0.75, 0.72, 0.67],
    "gpn": [0.70, 0.76, 0.71, 0.76, 0.75, 0.71],
    "joint": [0.90, 0.91, 0.90, 0.92, 0.93, 0.90],
}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return stored_result(tmp_path_factory.mktemp("template"))


def report(folder: Path, template: dict[str, Any], seeds: dict[str, range]) -> tuple[dict[str, list[str]], str]:
    """The rows of the result table in tables.md, and its notes."""
    actual = []
    for name, own in seeds.items():
        for seed in own:
            result = {**template, "average": FIGURES[name][seed], "uses_pool_labels": name == "joint"}
            actual.append((Cell(GRAPH, name, seed, rules=RULES), result))
    store(folder, "table2", "table2", actual)
    write_page(folder)
    rows, notes = next(iter(printed_tables(folder).values()))
    return {row[0].strip("*"): row for row in rows}, notes


def test_tables_show_the_corrected_test(tmp_path: Path, template: dict[str, Any]) -> None:
    rows, notes = report(tmp_path, template, dict.fromkeys(FIGURES, range(6)))
    reference = [100 * value for value in FIGURES["hag-meta"]]
    others = {name: [100 * value for value in values] for name, values in FIGURES.items() if name != "hag-meta"}
    ratio = template["n_test"] / template["n_train"]
    assert ratio != pytest.approx(1 / 3, abs=0.1)
    actual = {name: corrected_test(reference, values, ratio) for name, values in others.items()}
    smaller, larger = sorted((actual["cec"][2], actual["gpn"][2]))
    holm = {smaller: min(1.0, 2 * smaller), larger: max(larger, min(1.0, 2 * smaller))}
    for name in ("cec", "gpn"):
        mean, half_width, p_value = actual[name]
        adjusted = holm[p_value]
        shown = "< 0.001" if adjusted < 0.001 else f"{adjusted:.3f}"
        assert rows[name][-3:-1] == [f"{mean:+.2f} ± {half_width:.2f}", shown]
    mean, half_width, _ = actual["joint"]
    assert rows["joint†"][-3:-1] == [f"{mean:+.2f} ± {half_width:.2f}", ""], "shown, but not tested"
    assert rows["hag-meta"][-3:-1] == ["", ""]
    assert "Nadeau and Bengio" in notes
    assert f"n_test/n_train of the streams (mean {ratio:.2f})" in notes
    assert "p, Holm: corrected over the comparisons of hag-meta with every other row of this dataset" in notes
    assert "too few seeds" not in notes
    assert rf"n\_test/n\_train of the streams (mean {ratio:.2f})" in (tmp_path / "tables.tex").read_text()


def test_too_few_seeds_are_said_instead_of_p(tmp_path: Path, template: dict[str, Any]) -> None:
    rows, notes = report(tmp_path, template, dict.fromkeys(FIGURES, range(4)))
    for name in ("cec", "gpn"):
        assert rows[name][-2] == "too few seeds"
        assert re.fullmatch(r"[+-]\d+\.\d\d", rows[name][-3]), "a mean without an interval"
    assert re.fullmatch(r"[+-]\d+\.\d\d", rows["joint†"][-3])
    assert (rows["joint†"][-2], rows["hag-meta"][-2]) == ("", "")
    assert "too few seeds: fewer than 5 seeds shared with hag-meta, so the difference has no test" in notes
    assert "too few seeds for a test of the best row without a mark against every other, so none is bold" in notes
    assert "Nadeau" not in notes, "nothing was tested"
    assert "**" not in (tmp_path / "tables.md").read_text()
    assert " ± " in rows["cec"][-7], "the row's own average keeps its interval"
    page = re.search(r'type="application/json">(.*?)</script>', (tmp_path / "report.html").read_text(), re.S)
    assert page is not None
    (block,) = json.loads(page.group(1))["blocks"]
    table = block["tables"]["results"]
    place = table["columns"].index("p, Holm")
    assert {name: row[place] for name, row in zip(table["names"], table["rows"], strict=True)} == {
        "hag-meta": "",
        "cec": "too few seeds",
        "gpn": "too few seeds",
        "joint": "",
    }
    assert table["bold"] == []


def test_only_shared_seeds_count(tmp_path: Path, template: dict[str, Any]) -> None:
    """Five seeds each, of which four are the same."""
    rows, notes = report(tmp_path, template, {"hag-meta": range(5), "cec": range(1, 6), "gpn": range(5)})
    assert rows["cec"][-2] == "too few seeds"
    assert re.fullmatch(r"\d\.\d{3}", rows["gpn"][-2]), "tested, and alone: Holm's correction leaves it"
    assert "Nadeau" in notes
    assert "too few seeds: fewer than 5" in notes


PAIRED = {
    "anchor": [0.80, 0.81, 0.79, 0.83, 0.80],
    "hag-meta": [0.60, 0.66, 0.58, 0.61, 0.60],
    "cec": [0.59, 0.62, 0.60, 0.57, 0.61],
    "joint": [0.95, 0.96, 0.95, 0.94, 0.95],
}


def pair_test(
    figures: dict[str, list[float]], first: str, second: str, ratio: float = 1 / 3
) -> tuple[float, float, float]:
    """The test of two rows of shares, by the ratio of ``fake`` unless it is another."""
    ours, theirs = ([100 * value for value in figures[name]] for name in (first, second))
    return corrected_test(ours, theirs, ratio)


def holm_by_steps(p_values: dict[Any, float]) -> dict[Any, float]:
    """Holm's correction: the smallest times the number of tests, the next times one less, never falling."""
    actual, highest = {}, 0.0
    for step, name in enumerate(sorted(p_values, key=lambda name: p_values[name])):
        highest = max(highest, min(1.0, (len(p_values) - step) * p_values[name]))
        actual[name] = highest
    return actual


def test_all_pairs_are_one_family_with_one_p_value_for_each_pair() -> None:
    average, last = lead_tables(fake(PAIRED))
    names = ("anchor", "hag-meta", "cec")
    assert average.columns == last.columns == ("method", *names), "joint takes no part"
    tests = {}
    for row in names:
        for other in names:
            if row != other:
                tests[row, other] = pair_test(PAIRED, row, other)
    p = holm_by_steps({pair: tests[pair][2] for pair in (names[:2], names[1:], names[::2])})
    p |= {pair[::-1]: value for pair, value in p.items()}
    assert len(set(p.values())) > 1
    for table in (average, last):
        assert any("family of all pairs" in note for note in table.notes)
        for line in table.rows:
            for name, cell in zip(names, line[1:], strict=True):
                if name == line[0]:
                    assert cell == ""
                    continue
                mean, half, _ = tests[line[0], name]
                adjusted = p[line[0], name]
                p_text = "< 0.001" if adjusted < 0.001 else f"{adjusted:.3f}"
                assert cell == f"{mean:+.2f} ± {half:.2f} ({p_text})"
    few = lead_tables(fake({name: values[:4] for name, values in PAIRED.items()}))
    assert few[0].rows[0][2].endswith("(too few seeds)")
    assert lead_tables(fake({name: PAIRED[name] for name in ("anchor", "cec")})) == [], "the result table has it"


def test_both_families_rest_on_the_same_test_of_a_pair() -> None:
    block = fake(PAIRED)
    assert block.reference.name == "hag-meta"
    pairs = block.leads("average")["hag-meta"]
    for name in ("anchor", "cec"):
        assert block.comparisons[name].difference == pairs[name].difference
    raw = {name: block.comparisons[name].difference.p_value or 0.0 for name in ("anchor", "cec")}
    assert {name: block.comparisons[name].adjusted for name in raw} == pytest.approx(holm_by_steps(raw))
    assert block.comparisons["joint"].adjusted is None


# Ahead of every method: an intersection–union test


# Against five others: three raw p-values of about 0.03, which no correction would leave below 0.05
CLOSE = {
    "anchor": [0.80, 0.80, 0.80, 0.80, 0.80],
    **{name: [0.79, 0.775, 0.76, 0.78, 0.765] for name in ("cec", "gpn", "icarl", "tem", "teen")},
}


def test_ahead_of_every_method_takes_every_raw_p_value() -> None:
    block = fake({**CLOSE, "joint": [0.95] * 5})
    actual = claims(block, "anchor")
    assert list(actual.comparisons) == ["cec", "gpn", "icarl", "tem", "teen"], "joint takes no part"
    _, _, p = pair_test(CLOSE, "anchor", "cec")
    assert 0.01 < p < 0.05
    assert all(each.difference.p_value == pytest.approx(p) for each in actual.comparisons.values())
    assert actual.ahead_of_every
    assert block.winner == "anchor"
    assert (actual.ahead(holm=False), actual.tied(holm=False)) == (tuple(actual.comparisons), ())
    assert (actual.ahead(), actual.tied()) == ((), tuple(actual.comparisons)), "five times p is above 0.05"
    one_more = fake({**CLOSE, "lpmc": [0.81, 0.76, 0.80, 0.77, 0.79]})
    assert not claims(one_more, "anchor").ahead_of_every, "one p of 0.05 or more, and there is no such claim"
    assert claims(one_more, "anchor").tied(holm=False) == ("lpmc",)
    assert one_more.winner is None
    four = fake({name: values[:4] for name, values in CLOSE.items()})
    assert not claims(four, "anchor").ahead_of_every
    unshared = dataclasses.replace(actual, untested=frozenset({"lpmc"}))
    assert not unshared.ahead_of_every, "a method that shares no seed was not compared"
    assert claims(four, "anchor").tied(holm=False) == tuple(name for name in CLOSE if name != "anchor")


def test_claims_name_their_family_and_the_other_side() -> None:
    block = fake({"cec": PAIRED["anchor"], "gpn": PAIRED["cec"], "icarl": PAIRED["hag-meta"]})
    ours, theirs = claims(block, "cec"), claims(block, "gpn", "last")
    assert (ours.family, theirs.family) == ("cec against the rest, average", "gpn against the rest, last")
    assert (ours.ahead(), ours.behind()) == (("gpn", "icarl"), ())
    assert (theirs.ahead(), theirs.tied(), theirs.behind()) == ((), ("icarl",), ("cec",))


def test_claims_are_about_rows_without_a_mark() -> None:
    block = fake({**CLOSE, "joint": [0.95] * 5})
    form = Row("cec, wider", block.rows[1].results, form=True)
    queries = Row("meta-gnn", {s: {**r, "trained_on_query_labels": True} for s, r in block.rows[1].results.items()})
    marked = Block(block.grid, "debian", block.protocol, (*block.rows, form, queries), (), 0)
    assert claims(marked, "anchor") == claims(fake(CLOSE), "anchor")
    findings = Findings(Path(), (block.grid,), (marked,), ())
    assert list(claims_by_dataset(findings, "anchor", grid="g")) == ["debian"]
    assert claims_by_dataset(findings, "joint", grid="g") == {}
    assert claims_by_dataset(findings, "cec, wider", grid="g") == {}


def test_the_ratio_is_the_mean_over_the_shared_seeds() -> None:
    block = fake({"hag-meta": PAIRED["hag-meta"], "cec": PAIRED["cec"]})
    sizes = [(100, 50), (100, 60), (100, 70), (100, 80), (100, 90)]
    rows = [
        Row(row.name, {s: {**r, "n_train": sizes[s][0], "n_test": sizes[s][1]} for s, r in row.results.items()})
        for row in block.rows
    ]
    actual = Block(block.grid, "debian", block.protocol, tuple(rows), (), 0).comparisons["cec"].difference
    expected = pair_test(PAIRED, "hag-meta", "cec", 0.7)
    assert (actual.mean, actual.interval, actual.p_value) == pytest.approx(expected)


def test_the_page_gets_figures_with_more_digits_than_it_shows(tmp_path: Path, template: dict[str, Any]) -> None:
    """It rounds them when it shows them; a figure that was rounded before could end otherwise than in a table."""
    report(tmp_path, template, dict.fromkeys(FIGURES, range(6)))
    page = re.search(r'type="application/json">(.*?)</script>', (tmp_path / "report.html").read_text(), re.S)
    assert page is not None
    (block,) = json.loads(page.group(1))["blocks"]
    shown = {row["name"]: row["metrics"]["average"]["mean"] for row in block["rows"]}
    assert all(len(f"{mean}") <= 9 for mean in shown.values()), "a last digit depends on the machine"
    assert shown == {name: pytest.approx(100 * sum(values[:6]) / 6, abs=1e-6) for name, values in FIGURES.items()}


def test_another_form_of_a_method_takes_no_part(tmp_path: Path, template: dict[str, Any]) -> None:
    alone, _ = report(tmp_path / "alone", template, dict.fromkeys(FIGURES, range(6)))
    cells = [
        (Cell(GRAPH, name, seed, rules=RULES), {**template, "average": values[seed]})
        for name, values in FIGURES.items()
        if name != "joint"
        for seed in range(6)
    ]
    level = FIGURES["hag-meta"][::-1]  # level with it, so that Holm's correction of all others would grow
    wider = [Cell(GRAPH, "cec", seed, "cec, wider", RULES, {"size": 32}) for seed in range(6)]
    cells += [(cell, {**template, "average": level[cell.seed]}) for cell in wider]
    for kind, mark in (("table2", "§"), ("grid", "")):
        folder = tmp_path / kind
        store(folder, "some", kind, cells)
        write_page(folder)
        actual, notes = next(iter(printed_tables(folder).values()))
        rows = {row[0].strip("*"): row for row in actual}
        shown = rows["cec, wider" + mark]
        assert (shown[-2] == "") == bool(mark), "tested only where it is a row like any other"
        assert ("§ a variant" in notes) == bool(mark)
        assert (rows["gpn"][-2] == alone["gpn"][-2]) == bool(mark), "Holm corrects for the rows that are tested"


def test_ranks_are_over_graphs_and_apart_where_a_grid_varies_n_or_k() -> None:
    def block(dataset: str, way: int, first: float, second: float) -> Block:
        one = fake({"a": [first] * 3, "b": [second] * 3})
        return dataclasses.replace(one, grid=grid, dataset=dataset, protocol={**one.protocol, "way": way})

    grid = fake({}).grid
    blocks = (block("debian", 2, 0.8, 0.7), block("cora", 3, 0.6, 0.7), block("uai", 1, 0.6, 0.5))
    for each in blocks:
        ranks = Findings(Path(), (grid,), blocks, ()).ranks(each)
        assert ranks == pytest.approx({"a": 4 / 3, "b": 5 / 3}), "each graph has its own N"
    varied = (*blocks, block("debian", 3, 0.1, 0.2))
    assert Findings(Path(), (grid,), varied, ()).ranks(varied[0]) == {"a": 1.0, "b": 2.0}
    assert Findings(Path(), (grid,), varied, ()).ranks(varied[3]) == {"a": 2.0, "b": 1.0}
