"""Find labels that are improbable under models that were trained without them."""

from typing import Any

import numpy as np

from graphfcl.errors import InputError, shown
from graphfcl.graph.ids import text_array
from graphfcl.methods import Progress
from graphfcl.production.graph import ModelGraph
from graphfcl.production.model.cross_fitting import Folds, cross_fit
from graphfcl.production.model.parts import Configuration, seed_of, whole_number
from graphfcl.production.model.state import ModelState

Columns = dict[str, np.ndarray]


def find_label_issues(
    state: ModelState,
    configuration: Configuration,
    nodes: Any,
    *,
    count: int | None,
    threshold: float,
    folds: int,
    seed: int,
    device: str,
    progress: Progress,
) -> tuple[Columns, np.ndarray | None]:
    """Compute the table of :meth:`GraphClassifier.label_issues`, and (rows,) which of ``nodes`` each row is about.

    The second value is None if ``nodes`` is None.
    """
    most, folds, seed = _checked(count, threshold, folds, seed)
    graph, store = state.parts.graph, state.parts.label_store
    split = Folds.draw(store, folds, seed)
    chosen = None if nodes is None else graph.numbers_of(nodes)
    wanted = ~np.isin(split.nodes, store.reviewed()) if chosen is None else np.isin(split.nodes, chosen)
    places, confidence, guess, probability = _judged(split, wanted, configuration, graph, device, progress)
    order = np.lexsort((split.nodes[places], -confidence))
    order = order[confidence[order] >= threshold][:most]
    numbers, names = split.nodes[places[order]], store.classes
    labels = store.label_array()[[names.index(name) for name in split.names]]
    statements = [store.statements.get(number, ()) for number in numbers.tolist()]
    columns = {
        "node": graph.ids_of(numbers),
        "given": labels[split.classes[places[order]]],
        "given_by": text_array([" and ".join(dict.fromkeys(s.by for s in each if s.by)) for each in statements]),
        "given_when": text_array([" and ".join(dict.fromkeys(s.when for s in each if s.when)) for each in statements]),
        "confidence": confidence[order],
        "guess": labels[guess[order]],
        "probability": probability[order],
    }
    if chosen is None:
        return columns, None
    by_number = np.argsort(chosen, kind="stable")
    return columns, by_number[np.searchsorted(chosen, numbers, sorter=by_number)]


def issue_table(columns: Columns) -> Columns:
    """Return the columns of a file to fill in, with an empty column ``class`` after ``node``."""
    empty = text_array(["" for _ in columns["node"].tolist()])
    return {"node": columns["node"], "class": empty, **columns}


def _checked(count: Any, threshold: Any, folds: Any, seed: Any) -> tuple[int | None, int, int]:
    """Return the arguments, or refuse unusable ones before anything is computed."""
    if count is not None and whole_number(count, "the count", 20) < 1:
        raise InputError(f"the count is {count}: ask for at least one label.")
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not 0 <= threshold <= 1:
        raise InputError(f"the threshold is {shown(threshold)}: choose one between 0 and 1, such as 0.9.")
    if whole_number(folds, "the number of folds", 3) < 2:
        raise InputError(f"the number of folds is {folds}: split the labels into at least two.")
    return count, int(folds), seed_of(seed)


def _judged(
    folds: Folds, wanted: np.ndarray, configuration: Configuration, graph: ModelGraph, device: str, progress: Progress
) -> tuple[np.ndarray, ...]:
    """Return places of labels in ``folds``, 1 − p of each label, the likeliest other class, and its probability."""
    parts = [(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0, dtype=np.int64), np.zeros(0))]
    for places, probabilities in cross_fit(graph, folds, wanted, configuration, device=device, progress=progress):
        rows, given = np.arange(places.size), folds.classes[places]
        own = probabilities[rows, given].astype(np.float64)
        probabilities[rows, given] = -1
        guess = probabilities.argmax(axis=1)
        parts.append((places, np.clip(1 - own, 0, 1), guess, probabilities[rows, guess].astype(np.float64)))
    places, confidence, guess, probability = (np.concatenate(each) for each in zip(*parts, strict=True))
    return places, confidence, guess, probability
