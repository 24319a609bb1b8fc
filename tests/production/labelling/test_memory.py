"""Suggestions and groups of a large model on a graph folder take a bounded amount of memory."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

NODES = 100_000
MOST = 600 << 20  # bytes beyond what the libraries take; with the vectors of all nodes at once it is more than 1 GB
MEASURE = """
import json, resource, sys
from graphfcl import GraphClassifier
import sklearn.cluster, torch, scipy.stats, sklearn.linear_model
from sklearn.utils.extmath import randomized_svd

def peak():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

before, model = peak(), GraphClassifier.load(sys.argv[1])
found = {"suggest": len(model.suggest(10)), "suggest_peak": peak() - before}
found |= {"groups": len(model.groups(2)), "groups_peak": peak() - before}
print(json.dumps(found))
"""


def graphfcl(*arguments: object) -> None:
    command = [sys.executable, "-m", "graphfcl", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr


@pytest.mark.long
def test_the_memory_of_suggestions_and_groups(tmp_path: Path) -> None:
    synthetic = f"synthetic:nodes={NODES},edges={3 * NODES},classes=12,features=400"
    graphfcl("data", "import", "--graph", synthetic, "--out", tmp_path / "graph")
    graphfcl(
        *("fit", "--graph", tmp_path / "graph", "--model", tmp_path / "model", "--method", "sgc-ridge"),
        *("--work", tmp_path / "work", "--memory", "1GB", "--workers", "1", "--hide-classes", "class-10,class-11"),
    )
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(tmp_path / "model")],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    print(found)
    assert found["suggest"] == 10
    assert found["groups"] == 2
    assert found["suggest_peak"] < MOST
    assert found["groups_peak"] < MOST
