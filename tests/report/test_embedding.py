"""Pictures of embeddings."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from graphfcl.experiments import Grid
from graphfcl.report.embedding import embedding_figure, embeddings, same_class_share
from tests.report.folders import fake


def test_the_share_counts_points_whose_nearest_point_has_their_class() -> None:
    random = np.random.default_rng(0)
    points = {"x": random.random(60).tolist(), "y": random.random(60).tolist(), "labels": random.integers(0, 3, 60)}
    right = 0
    for i in range(60):
        distances = [
            (points["x"][i] - points["x"][j]) ** 2 + (points["y"][i] - points["y"][j]) ** 2 if i != j else np.inf
            for j in range(60)
        ]
        right += points["labels"][i] == points["labels"][int(np.argmin(distances))]
    assert same_class_share(points) == pytest.approx(right / 60)


@pytest.mark.parametrize("methods", [("cec",), ("hag-meta", "cec")])
def test_each_graph_has_a_row_and_each_method_a_panel(
    methods: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []
    monkeypatch.setattr("graphfcl.report.embedding.save_figure", lambda figure, _: drawn.append(figure))
    block = fake({name: [0.5] for name in methods})
    for row in block.rows:
        own = {"x": [0.0, 0.1, 5.0, 5.1], "y": [0.0] * 4, "labels": [0, 0, 1, 1]}
        row.results[0].update(embedding=own, session_of_class=[0, 1], classes=["a", "b"])
    blocks = [replace(block, grid=Grid("embed", "embed", ()), dataset=name) for name in ("one", "two")]
    assert [len(group["methods"]) for group in embeddings(blocks)] == [len(methods)] * 2
    embedding_figure(blocks, tmp_path / "x.png", {})
    titles = [panel.get_title() for panel in drawn[0].axes]
    share = "nearest point of the same class: 100 %"
    assert titles == [f"{name} on {graph}\n{share}" for graph in ("one", "two") for name in methods]
