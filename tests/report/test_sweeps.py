"""The figure of the parameter study shows the stored averages."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest

from graphfcl.report import Block, row_styles
from graphfcl.report import sweeps as module
from tests.report.folders import fake

METHODS = ("hag-meta", "cec")
SHOTS = (1, 5, 10)


def block_of(dataset: str, way: int, shot: int, *methods: str) -> Block:
    level = 0.4 + 0.01 * way + 0.02 * shot
    block = fake({name: [level + 0.1 * METHODS.index(name), level] for name in methods or METHODS})
    return replace(block, dataset=dataset, protocol={**block.protocol, "way": way, "shot": shot})


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Panels of the figure by their title, instead of a file."""
    found: dict[str, Any] = {}

    def keep(figure: Any, _path: Path) -> None:
        found.update({panel.get_title(): panel for panel in figure.axes if panel.get_title()})

    monkeypatch.setattr(module, "save_figure", keep)
    return found


def test_each_graph_and_n_has_a_panel_with_a_line_per_method(drawn: dict[str, Any], tmp_path: Path) -> None:
    blocks = [block_of(graph, way, shot) for graph in ("here", "there") for way in (2, 1) for shot in SHOTS]
    blocks.remove(next(block for block in blocks if block.protocol["way"] == 2 and block.protocol["shot"] == 5))
    blocks.append(block_of("here", 2, 5, "cec"))  # HAG-Meta has not run with this N and K
    module.sweep_figure(blocks, tmp_path / "sweep.png", row_styles([METHODS]))
    assert list(drawn) == ["here, 1-way", "here, 2-way", "there, 1-way", "there, 2-way"]
    panel = drawn["here, 2-way"]
    assert [text.get_text() for text in panel.get_xticklabels()] == list(map(str, SHOTS))
    lines = {line.get_label(): line for line in panel.get_lines()}
    assert lines.keys() == set(METHODS)
    for name, shots in (("hag-meta", (1, 10)), ("cec", SHOTS)):
        x, y = lines[name].get_data()
        assert list(x) == [SHOTS.index(shot) for shot in shots]
        for place, shot in enumerate(shots):
            expected = 0.0
            for row in block_of("here", 2, shot).rows:
                if row.name == name:
                    expected = 100 * sum(result["average"] for result in row.results.values()) / 2
            assert y[place] == pytest.approx(expected)
    plt.close("all")


def test_two_sweeps_of_a_graph_have_full_titles(drawn: dict[str, Any], tmp_path: Path) -> None:
    """They say which N; an N that lacks the largest K has no place for it."""
    blocks = [block_of("here", 1, shot) for shot in SHOTS]
    blocks += [block_of("here", 2, shot) for shot in SHOTS[:2]]
    opened = [replace(block, protocol={**block.protocol, "track": "open"}) for block in blocks]
    module.sweep_figure([*blocks, *opened], tmp_path / "sweep.png", row_styles([METHODS]))
    assert len(drawn) == 4
    assert sum("open" in title for title in drawn) == 2
    for way, ticks in ((1, SHOTS), (2, SHOTS[:2])):
        panels = [panel for title, panel in drawn.items() if f"{way}-way" in title]
        assert [len(panel.get_xticklabels()) for panel in panels] == [len(ticks)] * 2
    plt.close("all")
