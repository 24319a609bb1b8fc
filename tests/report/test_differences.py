"""Two folders of results side by side, and a report in a folder of its own, through the real command."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from graphfcl.experiments import Cell, CellStore
from graphfcl.report import folder_differences
from tests.cli.command import graphfcl_inside
from tests.methods.test_checks import GRAPH
from tests.metrics.test_comparison import corrected_test
from tests.report.folders import RULES, store, stored_result

BEFORE = [0.50, 0.52, 0.54, 0.51, 0.53]
AFTER = [0.53, 0.54, 0.59, 0.53, 0.57]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The second has another cec, no gpn, and an icarl with a new setting on one more seed."""
    place = tmp_path_factory.mktemp("two")
    template = stored_result(place / "template")

    def one(name: str, seed: int, average: float, **values: Any) -> tuple[Cell, dict[str, Any]]:
        result = {**template, "average": average, "stream": f"stream {seed}", "n_test": 1, "n_train": 2, **values}
        return Cell(GRAPH, name, seed, rules=RULES), result

    kept = [one("teen", seed, value) for seed, value in enumerate(BEFORE)]
    old = [one("cec", seed, value) for seed, value in enumerate(BEFORE)] + [one("gpn", 0, 0.4)]
    new_code = {**template["versions"], "code": "other"}
    new = [one("cec", seed, value) for seed, value in enumerate(AFTER)]
    kept_after = [(cell, {**result, "versions": new_code}) for cell, result in kept]
    settings = {**template["settings"], "epochs_more": 3}
    old += [one("icarl", 0, 0.3)]
    new += [one("icarl", 0, 0.3, settings=settings), one("icarl", 1, 0.6, settings=settings)]
    old += [one("tap", 0, 0.3)]
    new += [one("tap", 0, 0.35, stream="drawn by other rules")]
    new = [(cell, {**result, "versions": new_code}) for cell, result in new]
    store(place / "before", "table2", "table2", kept + old)
    store(place / "after", "table2", "table2", kept_after + new)
    return place / "before", place / "after"


def test_what_differs_is_listed_with_its_test(folders: tuple[Path, Path]) -> None:
    found = folder_differences(*folders)
    rows = {each.row: each for each in found.rows}
    assert found.code is not None
    assert found.code[1].endswith("hash other")
    assert found.machine is None
    assert rows["teen"].same
    test = rows["cec"].difference
    assert test is not None
    _, interval, p_value = corrected_test([100 * a for a in AFTER], [100 * b for b in BEFORE], 0.5)
    assert test.mean == pytest.approx(3.2)
    assert (test.interval, test.p_value) == (pytest.approx(interval), pytest.approx(p_value))
    assert rows["gpn"].notes == ("only before (1 seed)",)
    assert (rows["gpn"].before, rows["gpn"].after, rows["gpn"].difference) == (pytest.approx(40), None, None)
    assert rows["icarl"].difference is not None
    assert rows["icarl"].difference.mean == 0
    assert not rows["icarl"].same
    assert "setting epochs_more None → 3" in rows["icarl"].notes
    assert any("1 seed only after" in note for note in rows["icarl"].notes)
    assert rows["tap"].difference is None, "another stream is another experiment"


def test_the_command_prints_what_differs(folders: tuple[Path, Path]) -> None:
    before, after = folders
    done = graphfcl_inside("report", after, "--against", before)
    assert done.code == 0, done.err
    assert "+3.20" in done.out
    assert "rows that are the same in both: 1" in done.out
    assert not list(after.glob("report.html")), "it writes nothing"
    listed = json.loads(graphfcl_inside("report", after, "--against", before, "--json").out)["rows"]
    assert [each["row"] for each in listed if each["same"]] == ["teen"]
    assert {each["row"]: each["difference"] for each in listed}["cec"] == pytest.approx(3.2)
    same = graphfcl_inside("report", after, "--against", after)
    assert "No row differs." in same.out
    refused = graphfcl_inside("report", after, "--against", before / "none")
    assert refused.code == 2
    assert "has no grid" in refused.err
    assert not (before / "none").exists(), "reading makes no folder"
    assert graphfcl_inside("report", after, "--against", before, "--out", after / "x").code == 2


def test_a_report_can_be_written_elsewhere(folders: tuple[Path, Path], tmp_path: Path) -> None:
    before, _ = folders
    there = set(before.rglob("*"))
    done = graphfcl_inside("report", before, "--out", tmp_path / "new" / "report")
    assert done.code == 0, done.err
    names = {path.name for path in (tmp_path / "new" / "report").iterdir()}
    assert {"report.html", "tables.md", "tables.tex", "table2.png", "table2-time.png"} == names
    assert set(before.rglob("*")) == there
    file = tmp_path / "file"
    file.write_text("")
    refused = graphfcl_inside("report", before, "--out", file)
    assert refused.code == 2
    assert "--out" in refused.err


def test_a_cell_that_succeeded_later_is_no_failure(folders: tuple[Path, Path], tmp_path: Path) -> None:
    """Also in a packed folder, and if the failure was recorded by another process after the success."""
    shutil.copytree(folders[0], tmp_path / "copy")
    cells = CellStore(tmp_path / "copy")
    cells.fail(Cell(GRAPH, "cec", 0, rules=RULES), "out of memory")
    for _ in range(2):
        done = graphfcl_inside("report", tmp_path / "copy")
        assert done.code == 0, done.err
        for name in ("report.html", "tables.md", "tables.tex"):
            assert "out of memory" not in (tmp_path / "copy" / name).read_text()
        cells.pack()
