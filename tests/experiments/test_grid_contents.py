"""Which cells a grid has: the paper's tables, and files of a user's own."""

import json
from pathlib import Path
from typing import Any

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
    with pytest.raises(InputError, match="add the largest K"):
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


SWEPT = """
graphs = ["debian"]
seeds = 1
[[variants]]
method = "lpmc"
settings = { contrast = { epochs = 5 }, contrast.parts = 9 }
grid = { size = [8, 16], contrast = { noise = [0.1, 0.2], train_head = [true] } }
[[variants]]
name = "printed"
method = "er-gnn"
settings.adjustments = [0.0, 1.0]
[[variants]]
name = "replay"
method = "er-gnn"
grid.adjustments = [[0.0], [0.0, 1.0]]
grid.selection = ["influence"]
"""


def test_variants_list_values_of_settings(tmp_path: Path) -> None:
    """A list in ``settings`` is one value, in ``grid`` several; groups of settings may be tables or have dots."""
    path = tmp_path / "mine.toml"
    path.write_text(SWEPT.replace("contrast.parts = 9", '"contrast.parts" = 9'))
    cells = {cell.row: cell for cell in grid_from_toml(path).cells}
    fixed = {"contrast.epochs": 5, "contrast.parts": 9, "contrast.train_head": True}
    expected: dict[str, dict[str, Any]] = {
        f"lpmc, size={size}, contrast.noise={noise}, contrast.train_head=true": {
            **fixed,
            "size": size,
            "contrast.noise": noise,
        }
        for size in (8, 16)
        for noise in (0.1, 0.2)
    }
    expected["printed"] = {"adjustments": [0.0, 1.0]}
    expected["replay, adjustments=[0.0], selection=influence"] = {"adjustments": [0.0], "selection": "influence"}
    last = {"adjustments": [0.0, 1.0], "selection": "influence"}
    expected["replay, adjustments=[0.0, 1.0], selection=influence"] = last
    assert {row: cell.as_json()["settings"] for row, cell in cells.items()} == expected
    assert len({cell.key for cell in cells.values()}) == len(expected)
    for cell in cells.values():
        chosen = find_method(cell.method).settings_with(cell.as_json()["settings"])  # as a worker reads them
        assert chosen == find_method(cell.method).settings_with(cell.settings)
    swept = cells["lpmc, size=8, contrast.noise=0.2, contrast.train_head=true"]
    settings = find_method("lpmc").settings_with(swept.settings)
    assert (settings.size, settings.contrast.noise, settings.contrast.parts) == (8, 0.2, 9)


def variant(text: str) -> str:
    return f'graphs = ["a"]\n[[variants]]\n{text}\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (variant('name="x"\nmethod="lpmc"\nsettings={contrast={noize=1}}'), "variant 1: .* did you mean 'noise'"),
        (variant('name="x"\nmethod="lpmc"\nsettings={contrast=3}'), r"group of settings: write contrast\.NAME=value"),
        (variant('name="x"\nmethod="lpmc"\nsettings={contrast="3"}'), r"group of settings: write contrast\.NAME"),
        (variant('name="x"\nmethod="lpmc"\nsettings={size={a=1}}'), "is a single setting: write size=value"),
        (variant('name="x"\nmethod="lpmc"\nsettings={size=[8, 16]}'), r"\(8, 16\); it must be a whole number"),
        (variant('name="x"\nmethod="lpmc"\nsettings={size=0.5}'), "0.5; it must be a whole number"),
        (variant('name="x"\nmethod="lpmc"\nsettings={size=true}'), "True; it must be a whole number"),
        (variant('name="x"\nmethod="lpmc"\nsettings={last_relu=1}'), "1; it must be true or false"),
        (variant('name="x"\nmethod="er-gnn"\nsettings={adjustments=1}'), "adjustments is 1; it must be a list"),
        (variant('name="x"\nmethod="lpmc"\nsettings=3'), "settings must be a table"),
        (variant('method="lpmc"\ngrid={size=8}'), r"grid lists values .*: write size = \[1, 2\]"),
        (variant('method="lpmc"\ngrid={size=[]}'), "grid lists values of each setting"),
        (variant('method="lpmc"\ngrid={size=[8, "x"]}'), "lpmc.size is 'x'; it must be a whole number"),
        (variant('method="lpmc"\ngrid={contrast={noize=[1]}}'), "did you mean 'noise'"),
        (variant('method="lpmc"\ngrid={size=[8, 8]}'), "two rows have the name 'lpmc, size=8'"),
        (variant('method="lpmc"\ngrid={size=[8]}\nsettings={size=8}'), "size is in settings and in grid"),
        (variant('method="lpmc"\ngrid={}'), "variant 1: it needs a name and a method"),
        (variant('name=3\nmethod="lpmc"'), "name must be a string"),
        (variant('name="x"\nmethod="lpcm"'), "variant 1: .* did you mean 'lpmc'"),
        (variant('name="x"\nmethod="lpmc"\nsetings={}'), "line 5: there is no key 'setings'"),
        ('graphs = ["a"]\nmethods = ["cec"]\nways = []\n', "line 3: ways is empty"),
        ('graphs = ["a"]\nmethods = ["cec"]\nseeds = [-1]\n', "line 3: seeds must be"),
        ('graphs = ["debian"]\n\nmethdos = ["cec"]\n', r"line 3: there is no key 'methdos': did you mean 'methods'"),
        ('graphs = ["debian"]\nmethods = ["cecc"]\n', "did you mean 'cec'"),
        ('graphs = "debian"\nmethods = ["cec"]\n', "line 1: graphs must be a list"),
        ('graphs = ["debian"]\n', "needs `graphs` and either"),
        ("graphs = [", "is not TOML"),
        ('graphs = ["a"]\nmethods = ["cec"]\nshots = [1, "all"]\n', 'line 3: shots with "all" needs split_shot'),
        (
            'graphs = ["a"]\nmethods = ["cec"]\nsplit_shot = 5\n',
            "line 3: split_shot must be one number K, and shots must list",
        ),
        (
            'graphs = ["a"]\nmethods = ["cec"]\nsplit_shot = "5"\nshots = [1]\n',
            "line 3: split_shot must be one number K",
        ),
        ('graphs = ["a"]\nmethods = ["cec"]\nseeds = "12"\n', "line 3: seeds must be a number of seeds"),
        ('graphs = ["a"]\nmethods = [3]\n', "list of names"),
        ('graphs = ["a"]\nmethods = ["cec"]\nname = "../up"\n', "not a plain file name"),
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
