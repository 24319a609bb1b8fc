"""The paper's printed figures beside ours, through the real command on small files of the form of its datasets."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

from graphfcl.experiments import CellStore, Grid, GridStatus, run_cell
from graphfcl.report import paper_tables
from tests.cli.command import graphfcl_inside
from tests.datasets.test_reddit import write_graphsage
from tests.report.folders import printed_tables

SIZE, WORDS = 16, 80  # nodes per class; words in all
RULES = {"amazon-clothing": "3-way 5-shot", "dblp": "5-way 5-shot", "reddit": "2-way 3-shot"}
VERSION = "protocol version 3"
OTHER = "amazon-clothing-20"  # read from the files of amazon-clothing


class Nodes:
    """Nodes in random order whose class can be told by their words and neighbours."""

    def __init__(self, classes: int) -> None:
        random = np.random.default_rng(classes)
        self.labels = random.permutation(np.repeat(np.arange(classes), SIZE))
        self.count = self.labels.size
        likely = random.random((classes, WORDS)) < 0.15
        self.words = (random.random((self.count, WORDS)) < np.where(likely[self.labels], 0.7, 0.02)).astype(np.float32)
        members = [np.flatnonzero(self.labels == number) for number in range(classes)]
        inside = [(node, int(random.choice(members[self.labels[node]]))) for node in range(self.count) for _ in "ab"]
        across = random.integers(0, self.count, (self.count // 4, 2)).tolist()
        self.pairs = sorted({(a, b) for a, b in [*inside, *map(tuple, across)] if a != b})


def write_gpn(folder: Path, stem: str, classes: int) -> None:
    """The last 20 classes are in the test file, as in Amazon-Clothing's."""
    nodes = Nodes(classes)
    (folder / f"{stem}_network").write_text("".join(f"{a}\t{b}\n" for a, b in nodes.pairs))
    for part, chosen in (("train", nodes.labels < classes - 20), ("test", nodes.labels >= classes - 20)):
        index = np.flatnonzero(chosen)
        content = {"Index": index[None, :], "Label": nodes.labels[index][:, None].astype(float)}
        savemat(folder / f"{stem}_{part}.mat", {**content, "Attributes": sparse.csc_array(nodes.words[index])})


def write_reddit(folder: Path, classes: int) -> None:
    nodes = Nodes(classes)
    names = [f"t3_{number}" for number in range(nodes.count)]
    links = [{"test_removed": False, "train_removed": False, "target": b, "source": a} for a, b in nodes.pairs]
    graph = {"directed": False, "graph": {}, "nodes": [{"id": name} for name in names], "links": links}
    write_graphsage(
        folder,
        G=graph,
        id_map={name: row for row, name in enumerate(names)},
        class_map=dict(zip(names, nodes.labels.tolist(), strict=True)),
        feats=nodes.words,
    )


def run_quickly(grid: Grid, folder: Path, *, data_dir: Path, **_: Any) -> GridStatus:
    """As :func:`graphfcl.experiments.run_grid`, but in this process and with little training."""
    store = CellStore(folder)
    grid.save(folder)
    for cell in grid.cells:
        quick = replace(cell, settings={"pretraining.epochs": 3})
        result = run_cell(quick, device="cpu", encoders=folder / "encoders", data_dir=data_dir)
        store.save(cell, result)
    return GridStatus(len(grid.cells), done=len(grid.cells))


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data, folder = tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("out")
    write_gpn(data, "Amazon_clothing", 77)
    write_gpn(data, "dblp", 137)
    write_reddit(data, 41)
    words = ("--methods", "proto-gcn", "--seeds", 1, "--device", "cpu", "--data-dir", data, "--out", folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("graphfcl.experiments.run_grid", run_quickly)
        done = graphfcl_inside("bench", "table2", "--graph", ",".join([*RULES, OTHER]), *words)
    assert done.code == 0, done.err
    assert "8 cells done, 0 failed" in done.out, done.err
    return folder


def tables(out: Path) -> dict[str, list[list[str]]]:
    """Title of the block → rows of its result table."""
    end = ": balanced accuracy (%) by session"
    return {title.removesuffix(end): rows for title, (rows, _) in printed_tables(out).items() if title.endswith(end)}


@pytest.mark.parametrize("dataset", RULES)
def test_they_stand_below_ours_under_the_protocol_paper(out: Path, dataset: str) -> None:
    ours, printed = tables(out)[f"{dataset}, {RULES[dataset]}, paper, transductive, {VERSION}"]
    figures = paper_tables()["table2"][dataset]["proto-gcn"]
    assert (ours[0], printed[0]) == ("proto-gcn", "proto-gcn, printed")
    assert len(printed) == len(ours)
    assert printed[3:13] == [f"{value:.2f}" for value in figures["accuracy"]]
    assert printed[13:15] == [f"{figures['pd']:.2f}", f"{figures['rpd']:.2f}"]
    assert all(0 <= float(value.split()[0]) <= 100 for value in ours[2:13])


def test_they_stand_nowhere_else(out: Path) -> None:
    actual = tables(out)
    below = {title for title, rows in actual.items() if any("printed" in row[0] for row in rows)}
    assert below == {f"{dataset}, {rules}, paper, transductive, {VERSION}" for dataset, rules in RULES.items()}
    wanted = {f"{dataset}, {rules}, strict, transductive, {VERSION}" for dataset, rules in RULES.items()}
    wanted |= {f"{OTHER}, 3-way 5-shot, {name}, transductive, {VERSION}" for name in ("strict", "paper")}
    assert wanted <= set(actual), "those others are there"


def test_the_page_and_latex_have_them_too(out: Path) -> None:
    page = (out / "report.html").read_text()
    data = re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.S)
    assert data is not None
    blocks = {block["title"]: block for block in json.loads(data.group(1))["blocks"]}
    with_printed = {title for title, block in blocks.items() if block["tables"]["results"]["below"]}
    assert with_printed == {f"{dataset}, {rules}, paper, transductive, {VERSION}" for dataset, rules in RULES.items()}
    assert (out / "tables.tex").read_text().count("proto-gcn, printed") == len(RULES)
