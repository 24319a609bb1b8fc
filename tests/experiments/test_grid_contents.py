"""Which cells a grid has: the paper's tables, and files of a user's own."""

import json
from pathlib import Path

import pytest

from graphfcl import InputError, find_method
from graphfcl.experiments import grid_from_toml
from graphfcl.experiments.paper_grids import ABLATION, OTHER_FORMS, SHOTS_METHODS, embed, shots, sweep, table2, table3


def test_what_the_paper_s_tables_need() -> None:
    grid = table2(["debian", "wordnet"], ["hag-meta", "cec"], 3, ["strict", "paper"], {"way": 1})
    assert len({cell.key for cell in grid.cells}) == 2 * 2 * 3 * 2
    assert {cell.rules["name"] for cell in grid.cells} == {"strict", "paper"}
    ablation = table3(["debian"], 2, ["strict"], {})
    assert {cell.row for cell in ablation.cells} == set(ABLATION)
    assert len(ABLATION) == 8
    assert {cell.settings["fine_tuning_steps"] for cell in ablation.cells} == {20}
    study = sweep(["debian"], ["hag-meta", "cec"], 1, {})
    assert len(study.cells) == 2 * 16
    (first, second) = embed(["debian"], ["hag-meta", "cec"], {}).cells
    assert first.embed
    assert first.rules == second.rules == {"way": 2, "shot": 5, "sessions": 2}


def test_shots_share_the_classes_of_the_largest() -> None:
    grid = shots(["debian"], ["cec", "joint"], 2, {"way": 1})
    assert len({cell.key for cell in grid.cells}) == 2 * (5 + 1)
    rules = [cell.rules for cell in grid.cells if (cell.method, cell.seed) == ("cec", 0)]
    assert [rule["shot"] for rule in rules] == [1, 5, 20, 50, 50]
    assert all(rule["split_shot"] == 50 and rule["way"] == 1 for rule in rules)
    assert [rule for rule in rules if rule.get("pool_as_supports")] == rules[-1:]
    assert [cell.rules for cell in grid.cells if (cell.method, cell.seed) == ("joint", 0)] == rules[-1:]
    fewer = shots(["debian"], ["cec"], 1, {}, [5, "all", 2]).cells
    assert [(cell.rules["shot"], cell.rules["split_shot"]) for cell in fewer] == [(2, 5), (5, 5), (5, 5)]
    assert {cell.method for cell in shots().cells} == set(SHOTS_METHODS)
    assert len({cell.dataset for cell in shots().cells}) == 5
    with pytest.raises(InputError, match="name the largest K too"):
        shots(labels=["all"])


def test_a_toml_file_describes_a_grid(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'graphs = ["debian"]\nmethods = ["cec"]\nseeds = [3, 5]\ntracks = ["open", "isolated"]\nsessions = 2\n'
        '[[variants]]\nname = "small"\nmethod = "hag-meta"\nsettings = {size = 8}\n'
    )
    grid = grid_from_toml(path)
    assert grid.name == "mine"
    assert len(grid.cells) == 2 * 2 * 2
    assert {cell.row for cell in grid.cells} == {"cec", "small"}
    assert {cell.seed for cell in grid.cells} == {3, 5}
    assert {cell.rules["track"] for cell in grid.cells} == {"open", "isolated"}
    assert json.loads(json.dumps(grid.cells[0].as_json())) == grid.cells[0].as_json()


def test_a_toml_file_may_fix_the_classes_of_several_shots(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        'graphs = ["debian"]\nmethods = ["cec"]\nseeds = 1\nways = [1, 2]\nshots = [1, "all"]\nsplit_shot = 9\n'
    )
    every = {"shot": 9, "split_shot": 9, "pool_as_supports": True}
    assert [cell.rules for cell in grid_from_toml(path).cells] == [
        {"way": way} | shot for way in (1, 2) for shot in ({"shot": 1, "split_shot": 9}, every)
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('graphs = ["debian"]\n\nmethdos = ["cec"]\n', r"line 3: there is no key 'methdos': did you mean 'methods'"),
        ('graphs = ["debian"]\nmethods = ["cecc"]\n', "did you mean 'cec'"),
        ('graphs = "debian"\nmethods = ["cec"]\n', "line 1: graphs must be a list"),
        ('graphs = ["debian"]\n', "needs `graphs` and either"),
        ("graphs = [", "is not TOML"),
        ('graphs = ["a"]\nmethods = ["cec"]\nshots = [1, "all"]\n', 'line 3: shots with "all" needs split_shot'),
        ('graphs = ["a"]\nmethods = ["cec"]\nsplit_shot = 5\n', "line 3: split_shot is one K, and shots lists"),
        ('graphs = ["a"]\nmethods = ["cec"]\nsplit_shot = "5"\nshots = [1]\n', "line 3: split_shot is one K"),
        ('graphs = ["a"]\nmethods = ["cec"]\nseeds = "12"\n', "line 3: seeds must be a count"),
        ('graphs = ["a"]\nmethods = [3]\n', "list of names"),
        ('graphs = ["a"]\nmethods = ["cec"]\nname = "../up"\n', "no plain file name"),
        ('graphs = ["a"]\n[variants]\nname = "x"\n', "variants must be a list"),
        ('graphs=["a"]\n[[variants]]\nname="x"\nmethod="cec"\nsettings={sizes=3}\n', "did you mean 'size'"),
        ('graphs=["a"]\n[[variants]]\nname="x"\n', "needs a name and a method"),
    ],
)
def test_a_wrong_toml_is_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        grid_from_toml(path)


def test_other_forms_are_rows_of_their_own() -> None:
    printed = {"er-gnn, as printed": OTHER_FORMS["er-gnn, as printed"]}
    grid = table2(["debian"], ["er-gnn"], 2, ["strict"], {}, printed)
    assert [(cell.row, cell.method, cell.seed) for cell in grid.cells] == [
        ("er-gnn", "er-gnn", 0),
        ("er-gnn, as printed", "er-gnn", 0),
        ("er-gnn", "er-gnn", 1),
        ("er-gnn, as printed", "er-gnn", 1),
    ]
    assert grid.cells[1].settings["replay"] == "printed"
    assert grid.cells[0].key != grid.cells[1].key
    for method, settings in OTHER_FORMS.values():
        find_method(method).settings_with(settings)
