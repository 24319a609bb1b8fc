"""Groups of options, and how large a function may become."""

import ast
import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

import graphfcl
from graphfcl.cli.options import StreamOptions, with_option_groups

PACKAGES = ("cli", "datasets", "evaluation", "experiments", "metrics", "report")
MOST_LINES, MOST_PARAMETERS = 60, 12


@dataclass(frozen=True)
class Size:
    wide: Annotated[int, typer.Option("--wide", help="How wide.")]
    high: Annotated[int, typer.Option("--high", help="How high.")] = 2


def test_a_group_becomes_options() -> None:
    calls = []

    @with_option_groups
    def draw(name: str, *, loud: bool = False, size: Size) -> None:
        """Draw it."""
        calls.append((name, loud, size))

    assert list(inspect.signature(draw).parameters) == ["name", "loud", "wide", "high"]
    app = typer.Typer()
    app.command()(draw)
    assert CliRunner().invoke(app, ["box", "--wide", "3"]).exit_code == 0
    assert CliRunner().invoke(app, ["box", "--loud", "--wide", "3", "--high", "4"]).exit_code == 0
    assert calls == [("box", False, Size(3, 2)), ("box", True, Size(3, 4))]
    assert CliRunner().invoke(app, ["box"]).exit_code == 2, "--wide has no default"
    page = CliRunner().invoke(app, ["--help"]).output
    assert "Draw it." in page
    assert "How high." in page


def test_rules_that_were_not_given_are_none() -> None:
    assert not StreamOptions().used_flags()
    assert set(StreamOptions().changes().values()) == {None}
    rules = StreamOptions(protocol="paper", base="3", novel="a,b")
    assert rules.used_flags()
    changed = {name: value for name, value in rules.changes().items() if value is not None}
    assert changed == {"name": "paper", "base": 3, "novel": ("a", "b")}


@pytest.mark.parametrize("package", PACKAGES)
def test_functions_stay_small(package: str) -> None:
    for path in (Path(graphfcl.__file__).parent / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                docstring = (ast.get_docstring(node, clean=False) or "").count("\n")
                lines = (node.end_lineno or node.lineno) - node.lineno + 1 - docstring
                taken = node.args
                count = len([*taken.posonlyargs, *taken.args, *taken.kwonlyargs])
                assert lines <= MOST_LINES, f"{path.name}: {node.name} has {lines} lines"
                assert count <= MOST_PARAMETERS, f"{path.name}: {node.name} has {count} parameters"
