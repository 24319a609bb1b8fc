"""The script that counts files and lines."""

from pathlib import Path

import pytest

from scripts.code_size import Executed, Modules, code_lines, episode_figure, executed, imports_of_tests

ROOT = Path(__file__).parents[2]


def test_lines_of_code_leave_out_words(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text('"""Text\nof two lines."""\n\n# a comment\nimport os\n\n\nclass A:\n    b: int\n    """Of b."""\n')
    assert code_lines(path) == 3


def test_closures_and_importers(tmp_path: Path) -> None:
    package = tmp_path / "src" / "pack"
    package.mkdir(parents=True)
    for name, text in {
        "__init__": "",
        "a": "from pack import b\ndef f():\n    from pack.c import x",
        "b": "import pack.d",
        "c": "from pack.b import y",
        "d": "",
        "e": "",
    }.items():
        (package / f"{name}.py").write_text(text)
    modules = Modules(tmp_path / "src")
    assert modules.closure("pack.a") == {"pack.a", "pack.b", "pack.c", "pack.d"}
    assert modules.with_one_importer() == 2, "c and d"


def test_names_of_a_stub_come_from_their_modules(tmp_path: Path) -> None:
    package = tmp_path / "src" / "pack"
    package.mkdir(parents=True)
    for name, text in {
        "__init__.py": "",
        "__init__.pyi": "from .b import y as y",
        "a.py": "from pack import y",
    }.items():
        (package / name).write_text(text)
    (package / "b.py").write_text("y = 1")
    assert Modules(tmp_path / "src").closure("pack.a") == {"pack.a", "pack", "pack.b"}


def test_imports_are_counted(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(
        "import graphfcl\nfrom graphfcl import Graph\nfrom graphfcl.graph import Graph\nimport graphfcl.graph.ids\n"
    )
    assert imports_of_tests(tmp_path) == {
        "the package": 2,
        "public names of inner packages": 1,
        "modules inside": 1,
    }


def test_executed_files_are_counted() -> None:
    from graphfcl.runtime.memory import parse_bytes

    assert executed(lambda: parse_bytes("2GB", "--memory")) == 1
    assert executed(lambda: None) == 0
    assert Executed().files == set()


@pytest.fixture(scope="module")
def modules() -> Modules:
    """All modules of the package."""
    return Modules(ROOT / "src")


def test_the_package_is_measured(modules: Modules) -> None:
    assert 20 < len(modules.closure("graphfcl.methods.icarl")) < len(modules.paths)


@pytest.mark.long
def test_an_episode_is_measured() -> None:
    assert 3 < episode_figure() < 40


def test_icarl_is_understood_from_few_files(modules: Modules) -> None:
    assert len(modules.closure("graphfcl.methods.icarl")) <= 60
