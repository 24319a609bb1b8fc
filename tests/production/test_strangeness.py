"""Strangeness scores: what they say, and that one is added by one file and one line."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import graphfcl
from graphfcl.errors import InputError
from graphfcl.production.strangeness import STRANGENESS, Strangeness, find_strangeness
from tests.production.models import HIDDEN, NAME, quick

NEW_SCORE = """
import numpy as np

from graphfcl.production.strangeness.contract import Strangeness


def _strangeness(logits: np.ndarray) -> np.ndarray:
    ordered = np.sort(logits, axis=1)
    return ordered[:, -2] - ordered[:, -1]


MARGIN = Strangeness("margin", _strangeness)
"""
NEW_LINE = "from graphfcl.production.strangeness.margin import MARGIN"
FIT = """
import json, sys
import graphfcl
from graphfcl.datasets import load_dataset
from graphfcl.production import GraphClassifier

name, hidden, settings = json.loads(sys.argv[1])
model = GraphClassifier("proto-gcn", settings).fit(load_dataset(name)[0], hide_classes=hidden)
print(json.dumps([graphfcl.__file__, model.history[0]["unknown_auroc"]]))
"""


def test_the_order_decides_between_equals() -> None:
    assert [each.name for each in STRANGENESS] == ["probability", "score", "energy"]


@pytest.mark.parametrize("strangeness", STRANGENESS, ids=lambda each: each.name)
def test_a_node_far_from_every_class_is_stranger(strangeness: Strangeness) -> None:
    near, far = np.array([[5.0, 0.0, 0.0]]), np.array([[1.0, 0.5, 0.5]])
    assert find_strangeness(strangeness.name) is strangeness
    assert strangeness.of(far) > strangeness.of(near)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'energy'"):
        find_strangeness("energie")


def test_a_score_is_added_by_one_file_and_one_line(tmp_path: Path) -> None:
    package = tmp_path / "graphfcl"
    shutil.copytree(Path(graphfcl.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    folder = package / "production" / "strangeness"
    (folder / "margin.py").write_text(NEW_SCORE)
    listed = (folder / "__init__.py").read_text()
    last = "from graphfcl.production.strangeness.energy import ENERGY\n"
    assert last in listed
    (folder / "__init__.py").write_text(listed.replace(last, f"{last}{NEW_LINE}\n"))
    done = subprocess.run(
        [sys.executable, "-c", FIT, json.dumps([NAME, HIDDEN, quick("proto-gcn")])],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    place, found = json.loads(done.stdout.splitlines()[-1])
    assert Path(place).is_relative_to(tmp_path)
    assert list(found) == ["probability", "score", "energy", "margin"]
    assert 0 <= found["margin"] <= 1
