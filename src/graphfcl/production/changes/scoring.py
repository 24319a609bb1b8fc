"""How many answers are right."""

import warnings
from typing import Any

import numpy as np

from graphfcl.errors import GraphfclWarning, InputError, quoted
from graphfcl.graph.column_names import ReadColumns
from graphfcl.graph.frames import is_frame
from graphfcl.graph.ids import is_nothing, is_whole, listed, normal
from graphfcl.graph.labels import means_unknown
from graphfcl.production.changes.user_tables import read_ids, read_labels
from graphfcl.production.labels.arguments import list_of_nodes, shown
from graphfcl.production.labels.label_store import LabelStore


def true_classes(
    nodes: Any, classes: Any, columns: ReadColumns | None, label_store: LabelStore
) -> tuple[list[Any], np.ndarray]:
    """Ids of the nodes whose class is known, and (n,) their classes, as the model predicts them.

    nodes: ids, or a DataFrame, which may hold the classes too. columns: of the tables of the fit, which say what means
    unknown. A warning if no class is one of the model's.
    """
    ids, names = _given(nodes, classes, columns, label_store)
    called = {name: label_store.found(name) for name in set(names)}
    unknown = means_unknown if columns is None else columns.means_unknown
    passed = {name for name, own in called.items() if own is None and unknown(name)}
    known = [place for place, name in enumerate(names) if name not in passed]
    if not known:
        raise InputError("there is no node with a class to score: give at least one.")
    if not any(called.values()):
        warnings.warn(
            f"none of the classes that were given, such as {quoted(names[known[0]])}, is one of the model's: the score "
            "is 0; check how they are written.",
            GraphfclWarning,
            stacklevel=3,
        )
    found = np.empty(len(known), dtype=object)
    found[:] = [label_store.label(called[names[place]] or normal(names[place])) for place in known]
    return [ids[place] for place in known], found


def _given(
    nodes: Any, classes: Any, columns: ReadColumns | None, label_store: LabelStore
) -> tuple[list[Any], list[str]]:
    if classes is None:
        if not is_frame(nodes):
            raise InputError("score needs the true class of each node: give score(nodes, classes).")
        return read_labels(nodes, columns)
    if isinstance(classes, str):
        raise InputError(f"the classes are {shown(classes)}: give a list, a class for each node.")
    ids = read_ids(nodes, columns) if is_frame(nodes) else listed(list_of_nodes(nodes))
    names = ["" if _means_nothing(label) else label_store.text(label) for label in listed(classes)]
    if len(ids) != len(names):
        raise InputError(f"there are {len(ids)} nodes and {len(names)} classes: give a class for each node.")
    return ids, names


def _means_nothing(label: Any) -> bool:
    """Whether it stands for no class, as in the labels of a graph: a gap, or a negative number."""
    return is_nothing(label) or (is_whole(label) and label < 0)
