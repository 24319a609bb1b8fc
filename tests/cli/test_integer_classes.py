"""Integer classes on the command line, where all is text: 7 in a file is the class 7."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from graphfcl import GraphClassifier, write_tables
from tests.cli.command import graphfcl_inside
from tests.production.models import small_graph


def test_a_life_of_integer_classes(tmp_path: Path) -> None:
    graph, y = small_graph(), small_graph().labels * 3
    dense = np.asarray(graph.features.todense(), dtype=np.float32)[:, :30]
    whole = replace(graph, features=dense, class_names=tuple(map(str, range(0, 30, 3))), integer_classes=True)
    write_tables(whole, tmp_path / "shop", suffix="csv")
    model = tmp_path / "model"
    done = graphfcl_inside(
        "fit", "--graph", tmp_path / "shop", "--model", model, "--method", "sgc-ridge", "--hide-classes", "27"
    )
    assert done.code == 0, done.err
    supports = tmp_path / "supports.csv"
    supports.write_text("node,class\n" + "".join(f"{node},27\n" for node in graph.node_ids[y == 27][:5]))
    assert graphfcl_inside("learn", "--model", model, supports).code == 0
    for verb in (("rename", "0", "1"), ("merge", "3", "6"), ("retire", "9")):
        assert graphfcl_inside(verb[0], "--model", model, *verb[1:]).code == 0
    loaded = GraphClassifier.load(model)
    assert loaded.classes_ == (1, 6, 12, 15, 18, 21, 24, 27)
    out = tmp_path / "predicted"
    for suffix in ("csv", "parquet"):
        done = graphfcl_inside("predict", "--model", model, "--out", f"{out}.{suffix}", "--coverage", "0.9")
        assert done.code == 0, done.err
    table = pq.read_table(f"{out}.parquet")
    assert (table["class"].to_numpy() == loaded.predict(table["node"].to_numpy())).all()
    assert all(type(label) is int for row in table["set"].to_pylist() for label in row)
    with open(f"{out}.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["class"]) for row in rows] == table["class"].to_pylist()
    assert [json.loads(row["set"]) for row in rows] == table["set"].to_pylist()
    suggested = tmp_path / "nodes.csv"
    assert graphfcl_inside("suggest", "--model", model, "--budget", "3", "--out", suggested).code == 0
    with open(suggested, newline="") as file:
        assert all(int(row["guess"]) in loaded.classes_ for row in csv.DictReader(file))
    entries = json.loads(graphfcl_inside("history", "--model", model, "--json").out)
    assert "27" in json.dumps(entries)
    assert json.loads(graphfcl_inside("info", "--model", model, "--json").out)["classes"] == 8
