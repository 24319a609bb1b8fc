"""What turns raw features into those that a learner sees, as arrays and values of a tree, and back."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from graphfcl.production.store.block_arrays import BlockArrays
from graphfcl.production.store.damage import Damaged, need
from graphfcl.production.store.strict_json import whole_number
from graphfcl.production.store.trees import Tree

if TYPE_CHECKING:  # ids and labels are read without scipy
    from graphfcl.graph import Standardisation, TextWeights
    from graphfcl.graph.views import NumbersBesideWords

ARRAYS = ("text.columns", "text.weights", "means", "deviations", "beside.means", "beside.deviations")


def encode_views(text: "TextWeights | None", standardisation: "Standardisation | None", arrays: BlockArrays) -> Tree:
    """Both, of which a graph has at most one."""
    found: dict[str, Any] = {}
    values: dict[str, Any] = {}
    if text is not None:
        found["text.columns"] = arrays.write(text.columns)
        found["text.weights"] = arrays.write(text.inverse_document_frequency)
        values["min_nodes"] = text.min_nodes
        if text.beside is not None:
            found["beside.means"] = arrays.write(text.beside.standardisation.mean)
            found["beside.deviations"] = arrays.write(text.beside.standardisation.deviation)
            values["beside"] = list(text.beside.groups)
    if standardisation is not None:
        found["means"] = arrays.write(standardisation.mean)
        found["deviations"] = arrays.write(standardisation.deviation)
    return Tree(found, values)


def decode_views(
    tree: Tree, arrays: BlockArrays, width: int, *, dense: bool
) -> tuple["TextWeights | None", "Standardisation | None"]:
    """The reverse, checked. width: of raw features. dense: whether they are a matrix of numbers."""
    stored = {key: arrays.read(tree.arrays[key]) for key in ARRAYS if key in tree.arrays}
    text, standardisation = checked_views(stored, width, dense=dense)
    if text is not None and "min_nodes" in tree.values:
        text = replace(text, min_nodes=whole_number(tree.value("min_nodes"), "the nodes that a word needs", 0))
    if "beside" in tree.values:
        beside = _beside(tree.value("beside"), width, stored)
        if text is None:
            raise Damaged("it has numbers beside words, and no words")
        need(bool((text.columns < beside.first).all()), "a number is taken for a word")
        text = replace(text, beside=beside)
    return text, standardisation


def checked_views(
    stored: dict[str, np.ndarray], width: int, *, dense: bool
) -> tuple["TextWeights | None", "Standardisation | None"]:
    """Both, after their arrays are checked against each other and against the features."""
    from graphfcl.graph import Standardisation, TextWeights

    text = standardisation = None
    for key, values in stored.items():
        need(values.ndim == 1 and values.dtype.kind in "iuf", f"its {key} are no row of numbers")
        need(bool(np.isfinite(values).all()), f"its {key} are not all finite")
    if "text.columns" in stored or "text.weights" in stored:
        columns, weights = stored.get("text.columns"), stored.get("text.weights")
        if columns is None or weights is None or columns.shape != weights.shape or columns.dtype.kind != "i":
            raise Damaged("its words and their weights differ in number")
        need(columns.size == 0 or (columns.min() >= 0 and columns.max() < width), "a word has no column")
        need(not dense, "its words are no counts")
        text = TextWeights(columns, weights)
    if "means" in stored or "deviations" in stored:
        means, deviations = stored.get("means"), stored.get("deviations")
        if means is None or deviations is None or not means.shape == deviations.shape == (width,):
            raise Damaged("its features and their means differ in number")
        need(dense and bool((deviations >= 0).all()), "its deviations are none")
        standardisation = Standardisation(means, deviations)
    return text, standardisation


def _beside(groups: Any, width: int, stored: dict[str, np.ndarray]) -> "NumbersBesideWords":
    """What becomes of numbers beside words, checked."""
    from graphfcl.graph import Standardisation
    from graphfcl.graph.views import NumbersBesideWords

    need(isinstance(groups, list) and bool(groups), "its numbers beside words have no groups")
    widths = tuple(whole_number(each, "a group of numbers beside words", 1, width) for each in groups)
    means, deviations = stored.get("beside.means"), stored.get("beside.deviations")
    if means is None or deviations is None or not means.shape == deviations.shape == (sum(widths),):
        raise Damaged("its numbers beside words and their means differ in number")
    need(sum(widths) <= width and bool((deviations >= 0).all()), "its numbers beside words do not fit its features")
    return NumbersBesideWords(width - sum(widths), widths, Standardisation(means, deviations))
