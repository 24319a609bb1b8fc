"""Guards and dry runs of the verbs that change a model."""

import json
import shutil
from pathlib import Path

import pytest

from graphfcl import ModelFolder
from tests.cli.command import Result, assert_one_sentence, graphfcl_inside
from tests.cli.verbs import COMMANDS
from tests.production.models import everything, fitted, members

EIGHT, NINE = members("class-08"), members("class-09")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model of two versions and a fair number of tables."""
    root = tmp_path_factory.mktemp("guards")
    model = fitted("sgc-ridge")
    model.save(root / "m")
    model.learn({"eight": EIGHT[:4]}).save(root / "m")
    model.wait()
    tables: dict[str, tuple[str, list[tuple[object, ...]]]] = {
        "supports": ("node,class", [(node, "nine") for node in NINE[:4]]),
        "alike": ("node,class", [(NINE[0], "eight"), (NINE[1], "Eight"), (NINE[2], "nine")]),
        "rivals": ("node,class", [(node, f"rival of {name}") for name in RIVALS for node in members(name)[:25]]),
        "nodes": ("node,feature_3", [(9000, 1)]),
        "edges": ("source,target", [(EIGHT[0], NINE[0])]),
        "some": ("node", [(node,) for node in EIGHT[:2]]),
    }
    for name, (header, rows) in tables.items():
        (root / f"{name}.csv").write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return root


RIVALS = ("class-00", "class-02")
DRY: dict[str, list[str]] = {
    "learn": ["supports.csv"],
    "grow": ["--nodes", "nodes.csv", "--edges", "edges.csv"],
    "shrink": ["--nodes", "some.csv"],
    "unlearn": ["some.csv"],
    "rename": ["eight", "acht"],
    "merge": ["class-00", "class-01"],
    "retire": ["eight"],
    "rollback": ["1"],
    "prune": ["--keep", "1"],
    "erase": ["some.csv"],
    "refit": ["--anyway"],
    "groups": ["--name", "1=found", "--version", "2"],
}


@pytest.fixture
def root(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    copy = Path(shutil.copytree(made, tmp_path / "root"))
    monkeypatch.chdir(copy)
    return copy


def unchanged(root: Path, *words: object) -> Result:
    """Run a command that must leave every byte of the folder as it is."""
    before = everything(root)
    done = graphfcl_inside(*words, "--model", "m")
    assert everything(root) == before
    return done


def test_every_verb_that_changes_a_model_has_a_dry_run() -> None:
    able = {name for name, command in COMMANDS.items() if "--dry-run" in str([p.opts for p in command.params])}
    waiting = {name for name, command in COMMANDS.items() if "--wait" in str([p.opts for p in command.params])}
    assert able == set(DRY) == waiting - {"fit"}


@pytest.mark.parametrize("verb", DRY)
def test_a_dry_run_writes_nothing_and_says_what_the_change_does(root: Path, verb: str) -> None:
    words = [verb, *DRY[verb]]
    if verb == "groups" and not ModelFolder(root / "m").load().groups(1):
        pytest.skip("the model finds no group")
    text = unchanged(root, *words, "--dry-run")
    assert text.code == 0, text.err
    assert "Dry run: m stays at version 2." in text.out or "Would " in text.out
    would = json.loads(unchanged(root, *words, "--dry-run", "--json").out)
    done = json.loads(graphfcl_inside(*words, "--model", "m", "--json").out)
    assert would.pop("dry_run") is True
    effect = would.pop("effect", None)
    assert would.keys() == done.keys()
    if verb == "prune":
        assert would == done
    elif verb == "erase":
        assert would == done
        assert "Would erase 2 nodes (2 of them with a label)" in text.out
    else:
        assert effect["nodes_changed"] == sum(each["nodes"] for each in effect["moves"])
        assert set(effect) == {
            *("new_classes", "gone_classes", "accuracy_before", "accuracy_after", "nodes", "moves", "nodes_changed")
        }
        assert would["version"] == 2
        assert done["version"] == 3
        if verb != "refit":
            assert would["classes"] == done["classes"]
            assert [each["what"] for each in would["changes"]] == [each["what"] for each in done["changes"]]
        assert f"{effect['nodes_changed']:,} of {effect['nodes']:,} nodes change class" in text.out


def test_a_dry_run_in_words(root: Path) -> None:
    done = unchanged(root, "learn", "supports.csv", "--dry-run")
    assert "New class: nine." in done.out
    assert "→ nine" in done.out
    assert "% before" not in done.out
    assert "Balanced accuracy on validation nodes, %: " in done.out
    assert "Gone class: eight." in unchanged(root, "retire", "eight", "--dry-run").out


def test_new_classes(root: Path) -> None:
    refused = unchanged(root, "learn", "alike.csv")
    assert_one_sentence(refused, "alike.csv, line 3: 'Eight' is a new class, but 'eight' is known", "--new-class Eight")
    none = unchanged(root, "learn", "alike.csv", "--no-new-classes")
    assert_one_sentence(none, "line 3: 'Eight'", "line 4: 'nine' is a new class")
    assert_one_sentence(unchanged(root, "learn", "supports.csv", "--no-new-classes"), "line 2: 'nine' is a new class")
    assert_one_sentence(unchanged(root, "learn", "alike.csv", "--new-class", "Eight"), "'nine' is a new class")
    allowed = ("--new-class", "Eight", "--new-class", "nine")
    for words in (("learn", "alike.csv"), ("groups", "--name", "1=Eight", "--version", "2")):
        both = unchanged(root, *words, *allowed, "--no-new-classes")
        assert_one_sentence(both, "--no-new-classes and --new-class exclude each other: keep one of them.")
    assert graphfcl_inside("learn", "alike.csv", "--model", "m", *allowed).code == 0
    assert ModelFolder("m").load().classes_[-2:] == ("Eight", "nine")
    more = ("--no-new-classes", "--on-conflict", "replace")
    assert graphfcl_inside("learn", "supports.csv", "--model", "m", *more).code == 0


def test_a_change_that_costs_too_much_ends_with_3(root: Path) -> None:
    words = ("learn", "rivals.csv", "--on-conflict", "replace")
    for more in ((), ("--dry-run",)):
        refused = unchanged(root, *words, "--max-loss", "0.01", *more)
        assert refused.code == 3, refused.err
        (line,) = refused.err.splitlines()
        assert line.startswith("error: the 9 classes known before lost ")
        assert "'class-0" in line
        assert "allows 1.0 points; nothing was changed." in line
    assert graphfcl_inside(*words, "--model", "m", "--max-loss", "1").code == 0
    assert unchanged(root, *words, "--max-loss", "2").code == 2
    for verb in ("learn", "grow", "shrink", "unlearn", "merge", "retire", "groups"):
        assert "--max-loss" in str([parameter.opts for parameter in COMMANDS[verb].params])


@pytest.mark.parametrize("option", ["--dry-run", "--no-new-classes", "--new-class=a", "--max-loss=0.1"])
def test_groups_that_are_only_listed_take_no_guard(root: Path, option: str) -> None:
    assert_one_sentence(unchanged(root, "groups", option), "needs --name")
