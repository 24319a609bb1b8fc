"""Embedding plots: t-SNE of the nodes of all classes seen, as ``bench embed`` stores it."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.report.blocks import Block
from graphfcl.report.figures import Style
from graphfcl.runtime.figures import new_figure, save_figure

COLOURS = "tab20"


def embeddings(blocks: Iterable[Block]) -> list[dict[str, Any]]:
    """Points of each method by graph and seed, for the page."""
    groups: dict[str, dict[str, Any]] = {}
    for block in blocks:
        for row in block.rows:
            for seed, result in row.results.items():
                if result.get("embedding"):
                    title = f"{block.title}, after session {len(result['sessions']) - 1}, seed {seed}"
                    novel = [bool(arrival) for arrival in result["session_of_class"]]
                    empty = {"title": title, "classes": result["classes"], "novel": novel, "methods": []}
                    points = {key: result["embedding"][key] for key in ("x", "y", "labels")}
                    groups.setdefault(title, empty)["methods"].append({"name": row.name, **points})
    return list(groups.values())


def same_class_share(points: Mapping[str, Sequence[float]]) -> float:
    """Share of points whose nearest other point has the same class."""
    from sklearn.neighbors import NearestNeighbors

    places = np.column_stack((points["x"], points["y"]))
    labels = np.asarray(points["labels"])
    nearest = NearestNeighbors(n_neighbors=1).fit(places).kneighbors(return_distance=False)[:, 0]
    return float((labels == labels[nearest]).mean())


def embedding_figure(blocks: Sequence[Block], path: str | Path, _styles: Mapping[str, Style]) -> None:
    """Plot embeddings: a row per graph and a panel per method. Colours are classes, and circles are new classes."""
    groups = embeddings(blocks)
    across = max(len(group["methods"]) for group in groups)
    figure, grid = new_figure(4.4 * across, 4.1 * len(groups), (len(groups), across), share_scale=False)
    for group, panels in zip(groups, np.atleast_2d(grid), strict=True):
        dataset = group["title"].split(",")[0]
        for panel in panels:
            panel.set_axis_off()
        for points, panel in zip(group["methods"], panels, strict=False):
            labels, new = np.array(points["labels"]), np.array(group["novel"])[points["labels"]]
            for chosen, mark, size in ((~new, ".", 9), (new, "o", 16)):
                x, y = (np.array(points[axis])[chosen] for axis in ("x", "y"))
                panel.scatter(x, y, s=size, c=labels[chosen] % 20, cmap=COLOURS, vmin=0, vmax=19, marker=mark, lw=0)
            share = 100 * same_class_share(points)
            panel.set_title(
                f"{points['name']} on {dataset}\nnearest point of the same class: {share:.0f} %", fontsize=9
            )
    save_figure(figure, path)
