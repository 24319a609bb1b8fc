"""Colours and marks: apart for every reader, the same in every picture."""

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from graphfcl.methods import LEARNERS
from graphfcl.report import curves_figure, row_styles
from graphfcl.report.figures import MARKERS, Style, read_slots, spread
from tests.report.folders import fake

NAMES = some.text(alphabet="abcdefgh ,-", min_size=1, max_size=6)
GROUPS = some.lists(some.lists(NAMES | some.sampled_from(sorted(LEARNERS)), min_size=1, unique=True), max_size=4)
# How eyes without one kind of cone see linear red, green and blue (Machado, Oliveira, Fernandes 2009).
SIGHTS = {
    "usual": np.eye(3),
    "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritanopia": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}


def linear(colour: str) -> np.ndarray:
    parts = np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(colour: np.ndarray) -> np.ndarray:
    """CIE L*a*b* under D65."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    scaled = to_xyz @ np.clip(colour, 0, 1) / (to_xyz @ np.ones(3))
    x, y, z = np.where(scaled > 0.008856, np.cbrt(scaled), 7.787 * scaled + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def difference(one: str, other: str, sight: str) -> float:
    seen = [lab(np.array(SIGHTS[sight]) @ linear(colour)) for colour in (one, other)]
    return float(np.linalg.norm(seen[0] - seen[1]))


def contrast(one: str, other: str) -> float:
    """That of WCAG."""
    bright = sorted(0.05 + float(linear(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (one, other))
    return bright[1] / bright[0]


@pytest.mark.parametrize("sight", SIGHTS)
def test_rows_with_the_same_mark_have_colours_that_nobody_confuses(sight: str) -> None:
    slots, _ = read_slots()
    for one, other in combinations(slots, 2):
        if one.mark == other.mark:
            assert difference(one.light, other.light, sight) > 15, (one, other)
            assert difference(one.dark, other.dark, sight) > 15, (one, other)
    assert len({slot.light for slot in slots}) == len({slot.dark for slot in slots}) == len(slots)


def test_colours_stand_out_from_the_ground() -> None:
    for slot in read_slots()[0]:
        assert contrast(slot.light, "#f6f8fa") >= 3
        assert contrast(slot.dark, "#1a212a") >= 3


def test_every_method_of_the_package_has_a_colour_of_its_own() -> None:
    styles = row_styles([list(LEARNERS)])
    assert len({style.slot for style in styles.values()}) == len(LEARNERS)
    assert read_slots()[1].keys() <= LEARNERS.keys(), "no slot of a method that is not there"


@given(GROUPS)
def test_rows_that_are_shown_together_differ(groups: list[list[str]]) -> None:
    slots, fixed = read_slots()
    styles = row_styles(groups)
    assert styles == row_styles([group[::-1] for group in groups[::-1]]), "whatever the order"
    for group in groups:
        looks = [(styles[name].slot, styles[name].mark) for name in group]
        assert len(set(looks)) == len(looks)
        if len({name for each in groups for name in each}) <= len(slots):
            assert len({slot for slot, _ in looks}) == len(looks)
    assert all(styles[name] == slots[fixed[name]] for name in styles if name in fixed)


@given(NAMES, some.sets(some.sampled_from(sorted(LEARNERS))))
def test_a_plug_in_looks_the_same_beside_any_methods(name: str, beside: set[str]) -> None:
    assert row_styles([[name, *sorted(beside)]])[name] == row_styles([[name]])[name]


def test_many_rows_still_differ() -> None:
    styles = row_styles([[f"row {number}" for number in range(200)]])
    assert len({(style.slot, style.mark) for style in styles.values()}) == 200
    assert {style.mark for style in styles.values()} <= MARKERS.keys()


@given(some.lists(some.floats(0, 100), max_size=15))
def test_labels_are_spread(wanted: list[float]) -> None:
    places = spread(wanted, 5.0, 0.0, 100.0)
    order = np.argsort(wanted, kind="stable")
    sorted_places = np.array(places)[order]
    assert (np.diff(sorted_places) >= 5 - 1e-9).all()
    assert all(-1e-9 <= place <= 100 + 1e-9 for place in places)
    if (np.diff(np.sort(wanted)) > 5).all():
        assert places == pytest.approx(wanted), "those that are apart stay where they are"


def drawn(monkeypatch: pytest.MonkeyPatch, values: dict[str, list[float]], styles: dict[str, Style]) -> Any:
    actual = []
    monkeypatch.setattr("graphfcl.report.figures.save_figure", lambda figure, _: actual.append(figure))
    curves_figure([fake(values)], Path("unused.png"), styles)
    return actual[0]


def test_a_picture_has_the_colours_and_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    few = {"anchor": [0.7, 0.71], "proto-gat": [0.6, 0.6], "mine": [0.69, 0.7]}
    more = {"cec": [0.9, 0.9], **few, "hag-meta": [0.65, 0.6], "meta-gnn": [0.64, 0.6]}
    styles = row_styles([list(more)])
    for values in (few, more):
        figure = drawn(monkeypatch, values, styles)
        lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
        assert lines.keys() == values.keys()
        for name, line in lines.items():
            assert (line.get_color(), line.get_marker()) == (styles[name].light, MARKERS[styles[name].mark])


def test_names_at_line_ends_of_a_picture_do_not_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    values = {f"method {number}": [0.5 + number / 1000] * 2 for number in range(12)}
    figure = drawn(monkeypatch, values, row_styles([list(values)]))
    FigureCanvasAgg(figure).draw()
    boxes = [Text.get_window_extent(text) for text in figure.axes[0].texts]  # without the lines that lead to them
    assert len(boxes) == 12
    assert all(not one.overlaps(other) for one, other in combinations(boxes, 2))
    assert all(figure.bbox.x1 >= box.x1 for box in boxes), "nor stick out"
