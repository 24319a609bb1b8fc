"""``graphfcl methods`` and ``graphfcl check``, and methods that cannot be had on any command line."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphfcl.methods import registry
from tests.cli.command import assert_one_sentence, graphfcl_inside
from tests.outside.samples import GRAPH, nearest_mean


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user's current folder; what is brought from it is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry.REGISTRY, "registered", {})
    monkeypatch.setattr(registry.REGISTRY, "written", {})
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    nearest_mean(tmp_path)
    (tmp_path / "broken.py").write_text(
        "from nearest_mean import NearestMean\n"
        "class Broken(NearestMean):\n"
        "    def scores(self, visible, nodes):\n"
        "        return super().scores(visible, nodes)[:, :1]\n"
    )
    (tmp_path / "lacks.py").write_text("from graphfcl import Learner\nclass X(Learner):\n    pass\n")
    yield tmp_path
    for name in set(sys.modules) - before:
        if name in ("nearest_mean", "broken", "lacks"):
            del sys.modules[name]


def test_every_setting_is_explained() -> None:
    shown = graphfcl_inside("methods", "hag-meta")
    assert shown.code == 0
    assert "Form of task-level attention (TLA)" in " ".join(shown.out.split())
    own = graphfcl_inside("methods", "nearest_mean:NearestMean")
    assert "How often features are averaged over neighbours." in own.out


def test_a_learner_is_checked() -> None:
    kept = graphfcl_inside("check", "nearest_mean:NearestMean", "--set", "hops=1")
    assert kept.code == 0
    assert "nearest-mean keeps all" in kept.out
    assert "BROKEN" not in kept.out


def test_a_learner_that_breaks_rules_ends_with_exit_code_1() -> None:
    broken = graphfcl_inside("check", "broken:Broken")
    assert broken.code == 1
    assert "BROKEN  scores() returns one number per requested node and class seen" in broken.out
    assert "nodes by classes seen" in broken.out
    assert "broken breaks" in broken.out


WORDS: dict[str, list[object]] = {
    "run": ["run", "--graph", GRAPH, "--out", "out", "--method"],
    "bench": ["bench", "table2", "--graph", GRAPH, "--out", "out", "--method"],
    "bench, a list": ["bench", "table2", "--graph", GRAPH, "--out", "out", "--methods"],
    "fit": ["fit", "--graph", GRAPH, "--model", "out", "--method"],
    "check": ["check"],
    "methods": ["methods"],
}


@pytest.mark.parametrize("verb", WORDS)
@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("no_module:X", "cannot be imported"),
        ("nearest_mean:NearestMeen", "did you mean 'NearestMean'"),
        ("nearest_mean:np", "derives from graphfcl.Learner"),
        ("lacks:X", "lacks fit, learn, scores"),
        ("nearest_mean:", "write it as module:Class"),
    ],
)
def test_what_cannot_be_a_method_is_one_sentence(verb: str, reference: str, message: str, folder: Path) -> None:
    assert_one_sentence(graphfcl_inside(*WORDS[verb], reference), message)
    assert not (folder / "out").exists(), "nothing was written"
