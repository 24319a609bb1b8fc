"""Settings that are chosen on development graphs: the rule, and that the defaults of methods follow it."""

import csv
from pathlib import Path

import pytest

from graphfcl import find_method
from scripts import tuning
from scripts.tuning import STUDIES, TUNING, Candidate, Trial, chosen, grid_of, name_of, read_trials

REPORTED = {"debian", "wordnet", "amazon-clothing-20", "cora-topics", "coauthor-cs"}


def test_every_default_is_the_one_that_the_rule_chooses() -> None:
    for (study, method), candidate in chosen(read_trials()).items():
        settings = find_method(method).settings_with({})
        assert {name: getattr(settings, name) for name in candidate} == candidate, f"{study} of {method}"


def test_all_methods_of_a_study_have_the_same_candidates_graphs_and_seeds() -> None:
    with open(TUNING, newline="") as file:
        rows = list(csv.DictReader(file))
    assert not REPORTED & {row["graph"] for row in rows}
    for study, methods in STUDIES.items():
        runs = {
            method: {(row["candidate"], row["graph"], row["seed"]) for row in rows if row_is(row, study, method)}
            for method in methods
        }
        full = max(runs.values(), key=len)
        for method, own in runs.items():
            # A run whose encoder collapsed has no result.
            assert len(full - own) <= 1, method
    assert {len(trials) for trials in STUDIES["width"].values()} == {3}


def row_is(row: dict[str, str], study: str, method: str) -> bool:
    return (row["study"], row["method"]) == (study, method)


def test_the_best_mean_over_graphs_is_chosen_and_of_equal_ones_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow: Candidate = {"hidden": 4}
    wide: Candidate = {"hidden": 8}
    monkeypatch.setattr(tuning, "STUDIES", {"width": {"cec": (narrow, wide)}})

    def rows(of_wide: float) -> list[tuple[str, str, str, str, int, float, float, float]]:
        # The first graph has more seeds: graphs count the same.
        seeds = [("a", 0, 50.0), ("a", 1, 50.0), ("a", 2, 50.0), ("b", 0, 60.0)]
        here = [("width", "cec", name_of(narrow), graph, seed, value, 0.0, 1.0) for graph, seed, value in seeds]
        return [
            *here,
            ("width", "cec", name_of(wide), "a", 0, 50.0, 0, 1),
            ("width", "cec", name_of(wide), "b", 0, of_wide, 0, 1),
        ]

    def choice(of_wide: float) -> Candidate:
        path = tmp_path / "tuning.csv"
        with open(path, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(tuning.COLUMNS)
            writer.writerows(rows(of_wide))
        return chosen(read_trials(path))["width", "cec"]

    assert choice(60.0) == narrow
    assert choice(60.1) == wide
    assert choice(59.0) == narrow


def test_a_grid_has_whole_seeds_first() -> None:
    cells = grid_of("rank", ["cora-ml"]).cells
    assert [cell.seed for cell in cells] == sorted(cell.seed for cell in cells)
    assert len({cell.key for cell in cells}) == len(cells) == 3 * sum(map(len, STUDIES["rank"].values()))
    assert isinstance(read_trials()[0], Trial)
