"""What the history says of accuracy after a change."""

import numpy as np
import pytest

from graphfcl import GraphClassifier
from graphfcl.production.labels.label_store import LabelRole
from tests.production.models import copy_of, members


def test_the_history_warns_when_older_classes_lose(model: GraphClassifier) -> None:
    model.max_loss = 0.0
    zero = members("class-00")
    held_out = set(model.label_store_.with_role(LabelRole.VALIDATION)[0].tolist())
    taken = [node for node in zero if node not in held_out][:8]
    model.unlearn(taken)
    model.learn({"lookalike": taken})
    assert "lost" in model.history[-1]["warning"]
    assert model.history[-1]["accuracy"]["leave_one_out"] is not None


def test_leave_one_out_is_what_a_model_without_the_support_says(model: GraphClassifier) -> None:
    eight, nine = members("class-08")[:3], members("class-09")[:3]
    right = []
    for place in range(3):  # one support of each class at a time
        partial = copy_of(model)
        partial.learn(
            {
                "eight": [n for i, n in enumerate(eight) if i != place],
                "nine": [n for i, n in enumerate(nine) if i != place],
            }
        )
        right += (partial.predict([eight[place], nine[place]]) == np.array(["eight", "nine"], dtype=object)).tolist()
    model.learn({"eight": eight, "nine": nine})
    assert model.history[-1]["accuracy"]["leave_one_out"] == pytest.approx(np.mean(right), abs=1e-3)
