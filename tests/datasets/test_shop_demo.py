"""The shop of README: the tables that the tutorial's script makes."""

import subprocess
import sys
from importlib.resources import files
from pathlib import Path

from graphfcl import load_dataset
from tests.docs.blocks import ROOT, read_page


def test_the_tables_are_those_of_the_tutorial(tmp_path: Path) -> None:
    (script,) = (
        block.text
        for block in read_page(ROOT / "docs" / "tutorial.md").blocks
        if block.values("file") == ["make_shop.py"]
    )
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    for name in ("nodes.csv", "edges.csv"):
        shipped = files("graphfcl.datasets") / "files" / "shop-demo" / name
        assert shipped.read_bytes() == (tmp_path / "shop" / name).read_bytes()


def test_one_category_has_no_label() -> None:
    graph, protocol = load_dataset("shop-demo")
    assert protocol is None
    assert (graph.node_count, len(graph.class_names)) == (400, 7)
    assert "bicycles" not in graph.class_names
    assert int((graph.labels < 0).sum()) == 118
