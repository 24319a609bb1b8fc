"""Which labelled node plays which part in session 0."""

import numpy as np

from graphfcl import GraphClassifier
from graphfcl.production.labels.label_store import LabelRole
from tests.production.models import HIDDEN, members, small_graph


def test_all_labelled_nodes_play_a_part_and_a_fifth_is_held_out(start: GraphClassifier) -> None:
    graph = small_graph()
    shown = np.flatnonzero(~np.isin(graph.labels, [graph.class_names.index(name) for name in HIDDEN]))
    assert sorted(start.label_store_.nodes.tolist()) == shown.tolist()
    nodes, columns = start.label_store_.with_role(LabelRole.VALIDATION)
    sizes = np.bincount(columns)
    for column, name in enumerate(start.classes_):
        assert abs(sizes[column] - len(members(name)) / 5) <= 0.5
        assert {graph.class_names[graph.labels[node]] for node in nodes[columns == column]} == {name}
    base = start.learner_.sizes.base  # type: ignore[attr-defined]
    assert base == round(8 * 0.55)
