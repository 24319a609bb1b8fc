"""Registering and importing methods from outside, and what is refused."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphfcl import InputError, Learner, find_method, register_method
from graphfcl.methods import import_method, method_from, registry
from tests.outside.samples import nearest_mean


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.REGISTRY, "registered", {})
    monkeypatch.setattr(registry.REGISTRY, "written", {})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user's current folder; what is imported from it is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


class Constant(Learner):
    """Always the first class."""

    def fit(self, base: Any, *_: Any) -> None:
        self.classes_ = base.classes

    def learn(self, session: Any) -> None:
        self.classes_ += session.new_classes

    def scores(self, visible: Any, nodes: np.ndarray) -> np.ndarray:  # noqa: ARG002
        return np.zeros((nodes.size, len(self.classes_)))


def test_a_registered_class_is_a_method() -> None:
    assert register_method(Constant) is Constant
    method = find_method("constant")
    assert method.learner is Constant
    assert find_method(f"{__name__}:Constant") is method
    assert method.title == "Always the first class."
    assert method.source.startswith(f"{__name__}:Constant@")
    assert isinstance(method.make(seed=3), Constant)
    register_method(Constant)


def test_a_name_is_made_of_the_class() -> None:
    class HTTPGraphNet2(Constant):
        pass

    class Anchor(Constant):
        name = "my-anchor"

    assert HTTPGraphNet2.name == "http-graph-net2"
    assert Anchor.name == "my-anchor"


def test_module_and_class_are_imported_from_the_current_folder(folder: Path) -> None:
    nearest_mean(folder)
    with pytest.raises(InputError, match=r"not known here.*--method nearest_mean:NearestMean"):
        find_method("nearest_mean:NearestMean")
    assert str(folder) not in sys.path
    method = method_from("nearest_mean:NearestMean")
    assert method.name == "nearest-mean"
    assert find_method("nearest-mean") == find_method("nearest_mean:NearestMean") == method
    assert [row.name for row in method.settings_rows()] == ["hops"]
    assert method.settings_rows()[0].explanation.startswith("How often")
    assert method_from("graphfcl.methods.proto:ProtoGcn").source == "", "a method of our own is our own"


BAD = {
    "nothing": ("", "write it as module:Class"),
    "no_module:X": ("", "no_module cannot be imported"),
    "folder/file.py:X": ("", "name the module, not its file: folder.file:X"),
    "raises:X": ("raise RuntimeError('no licence')\n", "RuntimeError: no licence"),
    "leaves:X": ("import sys\nsys.exit(3)\n", "SystemExit: 3"),
    "broken:X": ("def (:\n", "SyntaxError"),
    "needs:X": ("import a_module_that_is_not_there\n", "a_module_that_is_not_there"),
    "other:Lerner": ("from tests.methods.test_registry import Constant as Learner2\n", "did you mean 'Learner2'"),
    "empty:X": ("", "it has no learner"),
    "number:x": ("x = 3\n", "not a class that derives from graphfcl.Learner"),
    "plain:X": ("class X:\n    pass\n", "not a class that derives from graphfcl.Learner"),
    "lacks:X": ("from graphfcl import Learner\nclass X(Learner):\n    pass\n", "lacks fit, learn, scores"),
}
START = "from tests.methods.test_registry import Constant\nfrom dataclasses import dataclass\n"
BAD |= {
    "clash:X": (f"{START}class X(Constant):\n    name = 'hag-meta'\n", "graphfcl itself uses that name"),
    "named:X": (f"{START}class X(Constant):\n    name = 'a b'\n", "the name of named:X is 'a b'"),
    "thawed:X": (
        f"{START}@dataclass\nclass S:\n    a: int = 1\nclass X(Constant):\n    settings_type = S\n",
        "frozen=True",
    ),
    "dict:X": (f"{START}class X(Constant):\n    settings_type = dict\n", "is not a dataclass"),
    "moody:X": (
        f"{START}@dataclass(frozen=True)\nclass S:\n    a: int = 1\n"
        "    def __post_init__(self):\n        raise ValueError('no')\nclass X(Constant):\n    settings_type = S\n",
        "cannot be made (ValueError: no)",
    ),
    "deep:X": (
        f"{START}from dataclasses import field\n@dataclass(frozen=True)\nclass S:\n"
        "    a: dict = field(default_factory=lambda: {'b': 1})\nclass X(Constant):\n    settings_type = S\n",
        "settings of deep:X",
    ),
    "bare:X": (
        f"{START}@dataclass(frozen=True)\nclass S:\n    a: int\nclass X(Constant):\n    settings_type = S\n",
        "give every setting of bare:X a default",
    ),
    "made:X": (f"{START}class X(Constant):\n    def __init__(self):\n        pass\n", r"must take (settings, \*"),
    "fits:X": (
        f"{START}class X(Constant):\n    def fit(self, base):\n        pass\n",
        "fit of fits:X must take (self, base, progress, encoders), as Learner.fit does",
    ),
    "asked:X": (f"{START}class X(Constant):\n    def scores(self, a, b, c): ...\n", "take (self, visible, nodes)"),
}


@pytest.mark.parametrize("reference", BAD)
def test_what_cannot_be_a_method_is_one_sentence(folder: Path, reference: str) -> None:
    text, message = BAD[reference]
    if text or reference == "empty:X":
        (folder / f"{reference.partition(':')[0]}.py").write_text(text)
    with pytest.raises(InputError) as caught:
        import_method(reference)
    said = str(caught.value)
    assert message.replace("\\", "") in said
    assert "\n" not in said
    assert reference.partition(":")[0] in said
    assert not registry.REGISTRY.registered, "nothing was registered"


def test_a_class_that_a_package_hands_on_is_known_by_the_name_that_was_written(folder: Path) -> None:
    (folder / "handed").mkdir()
    (folder / "handed" / "__init__.py").write_text("from .inner import X\n")
    (folder / "handed" / "inner.py").write_text(f"{START}class X(Constant):\n    name = 'handed-on'\n")
    method = import_method("handed:X")
    assert find_method("handed:X") is find_method("handed.inner:X") is find_method("handed-on") is method


def test_a_module_that_is_there_but_fails_is_not_said_to_be_missing(folder: Path) -> None:
    (folder / "licence.py").write_text("raise RuntimeError('no licence')\n")
    with pytest.raises(InputError, match="fix it"):
        import_method("licence:X")
    with pytest.raises(InputError, match="run from the folder that holds it"):
        import_method("license:X")
    with pytest.raises(InputError, match=r"^licence:X: "):
        method_from("licence:X", "licence:X")


def test_a_subclass_has_no_paper_of_its_own() -> None:
    class MyHag(find_method("hag-meta").learner):  # type: ignore[misc]
        """Mine."""

    assert (MyHag.name, MyHag.title, MyHag.reference) == ("my-hag", "Mine.", "")


def test_two_classes_of_one_name_clash(folder: Path) -> None:
    for name in ("first", "second"):
        (folder / f"{name}.py").write_text(f"{START}class X(Constant):\n    name = 'mine'\n")
    import_method("first:X")
    with pytest.raises(InputError, match="first:X has that name already: give it another `name`"):
        import_method("second:X")
    assert find_method("mine").learner.__module__ == "first"


def test_a_name_in_a_file_is_never_imported(folder: Path) -> None:
    (folder / "trap.py").write_text("open('sprung', 'w').close()\n")
    for name in ("os:system", "trap:X", "trap", f"{__name__}:Constant"):
        with pytest.raises(InputError):
            find_method(name)
        with pytest.raises(InputError, match=r"trap:X.*add --method trap:X"):
            find_method("mine", "trap:X@0123456789abcdef")
    assert not (folder / "sprung").exists()


# Plug-ins


@dataclass(frozen=True)
class Point:
    """An entry point of an installed package."""

    name: str
    value: str

    def load(self) -> Any:
        if self.value.startswith("good"):
            return Constant
        raise ImportError("no module named half")


def test_a_broken_plug_in_is_one_line_and_breaks_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [Point("constant", "good:Constant"), Point("half", "half:Learner")]
    monkeypatch.setattr(
        "graphfcl.runtime.registry.entry_points", lambda group: points if group == "graphfcl.methods" else []
    )
    rows = registry.plug_in_rows()
    assert rows[0][:2] == ("constant", "Always the first class.")
    assert rows[1][0] == "half"
    assert "broken plug-in" in rows[1][1]
    assert "no module named half" in rows[1][1]
    assert find_method("constant").learner is Constant
    assert find_method("good:Constant").learner is Constant
    registry.REGISTRY.registered.clear()
    assert find_method("another-name", "good:Constant@0123").learner is Constant, "a file says where it comes from"
    with pytest.raises(InputError, match=r"plug-in half .* cannot be imported"):
        find_method("half")
    with pytest.raises(InputError, match="did you mean 'constant'"):
        find_method("constent")
    assert find_method("hag-meta").source == ""
