"""What a fit makes of few labels, and of a calibration run that fails."""

from typing import Any

import numpy as np
import pytest

from graphfcl import DivergenceError, GraphClassifier, GraphfclWarning, build_graph
from graphfcl.production.answers.calibration import HeldOutResult
from tests.production.models import fitted, members, quick, small_graph


def test_classes_with_few_labels_are_learned_too() -> None:
    graph = small_graph()
    labels = graph.labels.copy()
    for name, count in (("class-07", 1), ("class-08", 3), ("class-09", 6)):
        labels[np.flatnonzero(labels == graph.class_number(name))[count:]] = -1
    thin = build_graph(graph.adjacency, graph.features, labels, class_names=graph.class_names, node_ids=graph.node_ids)
    model = GraphClassifier("proto-gcn", quick("proto-gcn")).fit(thin)
    assert set(model.classes_) == set(graph.class_names)
    assert (model.predict(members("class-09")) == "class-09").mean() > 0.3


def test_a_calibration_run_that_fails_is_said_and_the_fit_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    from graphfcl.methods.proto import ProtoGcn

    plain = ProtoGcn.fit

    def fails_on_fewer_classes(self: ProtoGcn, base: Any, *rest: Any) -> None:
        if len(base.classes) < 8:
            raise DivergenceError("no better than chance.")
        plain(self, base, *rest)

    monkeypatch.setattr(ProtoGcn, "fit", fails_on_fewer_classes)
    with pytest.warns(GraphfclWarning, match="held-out calibration run"):
        model = fitted()
    assert model.calibration_.held_out == HeldOutResult()
    np.testing.assert_allclose(
        model.learn({"eight": members("class-08")[:5]}).predict_proba().sum(axis=1), 1, rtol=1e-5
    )
