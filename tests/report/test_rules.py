"""Results of different numbers of the evaluation rules: never in one table, picture or rank."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphfcl.experiments import Cell, CellStore
from graphfcl.report import collect, write_page
from graphfcl.report.figures import accuracy_figure
from tests.measures.test_comparison import corrected_test
from tests.methods.test_checks import GRAPH
from tests.report.folders import RULES, printed_tables, store, stored_result

Stored = list[tuple[Cell, dict[str, Any] | None]]
FIGURES = {  # number of the rules → method → average of each seed
    1: {"hag-meta": [0.51, 0.55, 0.52, 0.59, 0.54], "cec": [0.46, 0.54, 0.46, 0.55, 0.52]},
    2: {"hag-meta": [0.81, 0.80, 0.82, 0.79, 0.84], "cec": [0.84, 0.85, 0.83, 0.85, 0.86]},
}
TITLE = "synthetic, 1-way 5-shot, strict, transductive, rules {}"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return stored_result(tmp_path_factory.mktemp("template"))


def one(template: dict[str, Any], method: str, seed: int, rules: int, **changes: Any) -> tuple[Cell, dict[str, Any]]:
    """A cell and its result; those of the first rules do not say their number."""
    number = {} if rules == 1 else {"rules": rules}
    own = {"dataset": GRAPH, "rules": RULES, "rules_number": rules, **changes.pop("of_cell", {})}
    return Cell(**own, method=method, seed=seed), {**template, **number, "settings": {"for": rules}, **changes}


def mixed(template: dict[str, Any], **changes: Any) -> Stored:
    """The same rows and seeds under both, one after the other."""
    return [
        one(template, method, seed, rules, average=FIGURES[rules][method][seed], **changes)
        for seed in range(5)
        for method in FIGURES[1]
        for rules in FIGURES
    ]


def page_data(folder: Path) -> dict[str, Any]:
    found = re.search(r'type="application/json">(.*?)</script>', (folder / "report.html").read_text(), re.S)
    assert found is not None
    return json.loads(found.group(1))


def test_each_number_has_tables_of_its_own(tmp_path: Path, template: dict[str, Any]) -> None:
    store(tmp_path, "table2", "table2", mixed(template))
    write_page(tmp_path)
    tables = printed_tables(tmp_path)
    assert [title for title in tables if ":" not in title] == [TITLE.format(1), TITLE.format(2)]
    assert all(re.search(r", rules [12](:|$)", title) for title in tables)
    for rules, rows in FIGURES.items():
        (first, second), _ = tables[TITLE.format(rules)]
        assert [first[0].strip("*"), second[0].strip("*")] == ["hag-meta", "cec"]
        assert (first[1].strip("*"), second[1].strip("*")) == ("5", "5")
        averages = [[100 * value for value in rows[name]] for name in ("hag-meta", "cec")]
        mean, half_width, p_value = corrected_test(*averages)
        assert second[-3:-1] == [f"{mean:+.2f} ± {half_width:.2f}", f"{p_value:.3f}"]
        assert first[-7].strip("*").startswith(f"{np.mean(averages[0]):.2f} ± ")
    captions = re.findall(r"\\caption\{(.*?)\}", (tmp_path / "tables.tex").read_text())
    assert captions == list(tables)


def test_the_page_keeps_them_apart(tmp_path: Path, template: dict[str, Any]) -> None:
    store(tmp_path, "table2", "table2", mixed(template))
    write_page(tmp_path)
    data = page_data(tmp_path)
    assert data["about"].startswith("synthetic; 5 seeds; rules 1, 2, never in one table.")
    assert [block["title"] for block in data["blocks"]] == [TITLE.format(1), TITLE.format(2)]
    for block, rules in zip(data["blocks"], FIGURES, strict=True):
        shown = {row["name"]: row["average"]["mean"] for row in block["rows"]}
        assert shown == {name: pytest.approx(100 * np.mean(values)) for name, values in FIGURES[rules].items()}
    settings = {entry["name"]: entry["settings"]["for"] for entry in data["settings"]}
    assert settings == {f"table2: {name}, rules {rules}": rules for name in FIGURES[1] for rules in FIGURES}
    assert [line.split(":")[0] for line in data["versions"]] == ["table2, rules 1", "table2, rules 2"]


def test_rows_of_different_numbers_are_not_compared(tmp_path: Path, template: dict[str, Any]) -> None:
    """One row ran under the first rules only, the other under the second only."""
    cells = [one(template, name, seed, rules) for seed in range(5) for name, rules in (("hag-meta", 1), ("cec", 2))]
    store(tmp_path, "mine", "grid", cells)
    blocks = collect(tmp_path).blocks
    assert [(block.rules, [row.name for row in block.rows]) for block in blocks] == [(1, ["hag-meta"]), (2, ["cec"])]
    assert all(not block.comparisons and block.winner is None for block in blocks)


def test_ranks_are_those_of_one_number(tmp_path: Path, template: dict[str, Any]) -> None:
    """Under the first rules hag-meta is always ahead, under the second never."""
    cells = []
    for dataset in ("here", "there"):
        cells += mixed(template, dataset=dataset, of_cell={"dataset": dataset})
    store(tmp_path, "table2", "table2", cells)
    findings = collect(tmp_path)
    ranks = {(block.dataset, block.rules): findings.ranks(block) for block in findings.blocks}
    ahead, behind = {"hag-meta": 1.0, "cec": 2.0}, {"hag-meta": 2.0, "cec": 1.0}
    assert ranks == {(name, rules): (ahead if rules == 1 else behind) for name in ("here", "there") for rules in (1, 2)}


def test_each_number_has_a_picture_of_its_own(
    tmp_path: Path, template: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    titles: dict[str, list[str]] = {}

    def note_titles(figure: Any, path: Path) -> None:
        titles[Path(path).name] = [panel.get_title() for panel in figure.axes if panel.get_title()]

    monkeypatch.setattr("graphfcl.report.figures.save_figure", note_titles)
    store(tmp_path, "old", "grid", [one(template, "cec", 7, 1)])
    write_page(tmp_path)
    assert titles == {"old.png": ["synthetic, rules 1"]}
    store(tmp_path, "table2", "table2", mixed(template))
    write_page(tmp_path)
    first, second = ["synthetic, rules 1"], ["synthetic, rules 2"]
    assert titles == {"old.png": first, "table2.png": second, "table2-rules-1.png": first}
    store(tmp_path, "table2-rules-1", "grid", [one(template, "cec", 8, 2)])
    written = [path.name for path in write_page(tmp_path)]
    wanted = {"old.png": first, "table2.png": second, "table2-rules-1.png": second, "table2-rules-1_.png": first}
    assert titles == wanted, "and none takes the name of another grid's"
    assert sorted(name for name in written if name.endswith(".png")) == sorted(wanted)
    accuracy_figure({**template, "rules": 2}, tmp_path / "run.png")
    accuracy_figure(template, tmp_path / "older.png")
    assert "rules 2" in titles["run.png"][0]
    assert "rules 1" in titles["older.png"][0]


def test_sweeps_and_embeddings_of_different_numbers_are_not_joined(tmp_path: Path, template: dict[str, Any]) -> None:
    swept = []
    for way, rules in ((1, 1), (2, 1), (1, 2), (3, 2)):
        protocol = {**template["protocol"], "way": way}
        cell_rules = {"rules": {**RULES, "way": way}}
        swept.append(one(template, "cec", 0, rules, average=way / 10, protocol=protocol, of_cell=cell_rules))
    store(tmp_path, "sweep", "sweep", swept)
    flat = {"x": [0.0], "y": [0.0], "labels": [0]}
    seen = [one(template, "cec", 0, rules, embedding=flat, of_cell={"embed": True}) for rules in (1, 2)]
    store(tmp_path, "embed", "embed", seen)
    write_page(tmp_path)
    rows = {title: [row[0] for row in rows] for title, (rows, _) in printed_tables(tmp_path).items()}
    title = "synthetic: cec, average balanced accuracy, rules {}"
    assert rows == {title.format(1): ["1-way", "2-way"], title.format(2): ["1-way", "3-way"]}
    data = page_data(tmp_path)
    assert [(sweep["rules"], sweep["ways"]) for sweep in data["sweeps"]] == [(1, [1, 2]), (2, [1, 3])]
    assert [(group["title"][-7:], len(group["methods"])) for group in data["embeddings"]] == [
        ("rules 1", 1),
        ("rules 2", 1),
    ]


def test_unfinished_cells_are_counted_where_they_will_stand(tmp_path: Path, template: dict[str, Any]) -> None:
    left = [one(template, "gpn", seed, rules)[0] for seed, rules in ((0, 1), (1, 2), (2, 2))]
    broken = one(template, "gpn", 3, 1)[0]
    store(tmp_path, "table2", "table2", [*mixed(template), *((cell, None) for cell in (*left, broken))])
    CellStore(tmp_path).fail(broken, "it broke")
    first, second = collect(tmp_path).blocks
    assert (first.rules, first.missing, first.failures) == (1, 1, (("gpn", 3, "it broke"),))
    assert (second.rules, second.missing, second.failures) == (2, 2, ())
    write_page(tmp_path)
    assert page_data(tmp_path)["failures"] == [f"table2: {GRAPH}, gpn, seed 3, rules 1: it broke"]
