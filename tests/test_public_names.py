"""Every name of the package that README and the docs use is public: it stands in ``__all__`` of a public module."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from textwrap import dedent

import pytest

import graphfcl
from tests.record_surface import PUBLIC

ROOT = Path(__file__).parents[1]
OF_THE_HOUSE = {"architecture.md"}  # speaks of what is inside
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCED = re.compile(r"^ *```(\w*)[^\n]*\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


@cache
def public_names() -> set[str]:
    return {name for module in PUBLIC for name in import_module(module).__all__}


@cache
def defined() -> set[str]:
    """Functions and classes at the top of the package's modules, but for verbs of the command line."""
    found = set()
    for path in (ROOT / "src" / "graphfcl").rglob("*.py"):
        if "cli" not in path.parts:
            body = ast.parse(path.read_text()).body
            found |= {node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return {name for name in found if not name.startswith("_")}


@cache
def members() -> set[str]:
    """Methods of public classes, which are called without their class."""
    kinds = [getattr(graphfcl, name) for name in graphfcl.__all__ if isinstance(getattr(graphfcl, name), type)]
    return {name for kind in kinds for name in dir(kind)}


def snippets(text: str) -> Iterator[str]:
    """The Python of a page; of a session at the prompt what was typed."""
    for language, code in FENCED.findall(text):
        lines = dedent(code).splitlines()
        typed = [line[4:] for line in lines if line.startswith((">>> ", "... "))]
        if language in ("python", "pycon"):
            yield "\n".join(typed or lines)


def imports(text: str) -> Iterator[tuple[str, str]]:
    """Module and name of each import from the package on a page; `graphfcl.name` counts too."""
    for node in (node for code in snippets(text) for node in ast.walk(ast.parse(code))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "graphfcl":
            yield from ((str(node.module), alias.name) for alias in node.names)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "graphfcl":
            yield "graphfcl", node.attr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_of_a_page_are_public(page: Path) -> None:
    text = page.read_text()
    for module, name in imports(text):
        assert module in PUBLIC, f"{page.name} imports {name} from {module}"
        assert name in import_module(module).__all__, f"{page.name}: {module}.{name} is not public"
    if page.name in OF_THE_HOUSE:
        return
    inside, known = defined(), public_names() | members()
    for code in INLINE.findall(FENCED.sub("", text)):
        for name in re.findall(r"(?<![\w./:-])([A-Za-z_]\w+)(?=\()", code) + re.findall(r"^([A-Z]\w+[a-z]\w*)$", code):
            assert name not in inside or name in known, f"{page.name}: `{code}` names {name}, which is not public"


def test_there_are_pages_that_use_names() -> None:
    used = {name for page in PAGES for _, name in imports(page.read_text())}
    assert {"GraphClassifier", "load_dataset", "from_frames", "evaluate", "MLflowTracker"} <= used
