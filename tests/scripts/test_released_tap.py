"""The script that runs TAP's released code on a saved stream, with a stand-in for that code."""

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.released_tap import FORMS
from tests.cli.command import graphfcl_inside
from tests.methods.test_checks import GRAPH

ROOT = Path(__file__).parents[2]
CODE = {
    "data_split": """
        def load_data(*_): raise AssertionError("the code's own data")
        base_train_val_split = task_generator = load_data
        def update_incremental_adj(adj, old, classes, labels, edge_labels, noise): return old
        """,
    "trainer": """
        from data_split import *
        import torch
        def k_hop_subgraph(node, hops, edges): return torch.tensor([node]), None, None, None
        def compute_prototypes(*words, **options): return words[6]
        def get_base_prototypes(*_, device): return device.type
        def test_base(*_): return 0.5
        def test_incremental(*_): return 0.25, 0.5, 0.0
        """,
    "main": """
        import argparse
        import torch
        from data_split import *
        from trainer import *

        class Perfect(torch.nn.Module):
            def forward(self, features, edges):
                vectors = torch.nn.functional.one_hot(labels, len(nodes)).float()
                vectors[wrong] = 0 - vectors[wrong]
                return vectors, None

        parser = argparse.ArgumentParser()
        for name in ("seed", "episodes", "way", "shot", "session", "kmean_hops"):
            parser.add_argument(f"--{name}", type=int)
        args = parser.parse_args()
        adj, features, labels, degrees, nodes, base, novel, counts, size = load_data("any", args.way, args.session)
        assert adj.shape[0] == features.shape[0] == len(labels) == size and adj.is_coalesced()
        train, test = base_train_val_split(nodes, base)
        assert not set(train) & set(test) and {int(labels[row]) for row in test} == set(base)
        means, wrong, seen = torch.eye(len(nodes)), [], []
        test_base(Perfect(), features, adj.indices(), test, means[: len(base)], labels)
        for session in range(args.session):
            queries, supports, classes = task_generator(nodes, args.way, args.shot, novel)
            assert [int(labels[row]) for row in supports] == [c for c in classes for _ in range(args.shot)]
            assert not set(queries) & set(supports) and set(classes) <= set(novel) - set(seen)
            edges = update_incremental_adj(adj, torch.zeros(2, 0).long(), classes, labels, None, noise=True)
            ends = [{int(labels[a]), int(labels[b])} for a, b in adj.indices().T]
            between = sum(len(each & set(classes)) == len(each & {*base, *seen}) == 1 for each in ends)
            print("edges to earlier sessions", edges.shape[1] / between)
            seen += classes
            wrong = [row for row in test if labels[row] == base[0]]  # a class of session 0 is not recognised
            known = means[: len(base) + len(seen)]
            test_incremental(Perfect(), features, adj.indices(), test, queries, [], base, classes, seen, known)
        assert k_hop_subgraph(7, 2, adj)[0] == [7] and get_base_prototypes() == "cpu"
        print("prototypes of", compute_prototypes(0, 1, 2, 3, 4, 5, args.way, 7))
        """,
}


@pytest.mark.parametrize("form", FORMS)
def test_the_code_runs_on_a_stream_and_is_measured(form: str, tmp_path: Path) -> None:
    for name, text in CODE.items():
        lines = text.split("\n")[1:]
        (tmp_path / f"{name}.py").write_text("\n".join(line[8:] for line in lines))
    saved, out = tmp_path / "stream.npz", tmp_path / "out.csv"
    assert graphfcl_inside("stream", "--graph", GRAPH, "--way", "2", "--shot", "3", "--out", saved).code == 0
    for epochs in ("1000", "4"):
        words = (str(tmp_path), str(saved), "--out", str(out), "--form", form, "--epochs", epochs)
        command = [sys.executable, "-m", "scripts.released_tap", *words]
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""}
        )
        assert done.returncode == 0, done.stderr
        assert f"prototypes of {3 if form == FORMS[1] else 2}" in done.stdout
        shares = re.findall(r"edges to earlier sessions (\S+)", done.stdout)
        assert set(shares) == {"1.0" if form == FORMS[2] else "0.0"}
    with open(out, newline="") as file:
        first, second = csv.DictReader(file)
    assert (first["code"], second["code"], first["form"], first["seed"]) == ("TAP", "TAP, 4 epochs", form, "0")
    assert float(first["session_0"]) == float(first["new_classes"]) == 100
    assert 0 < float(first["session_0_classes"]) < float(first["last_session"]) < 100, "each class counts the same"
    assert float(first["its_own_accuracy"]) == 25
    with open(ROOT / "results" / "released_code.csv", newline="") as file:
        assert csv.DictReader(file).fieldnames == list(first)
