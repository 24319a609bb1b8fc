"""Explanations in the user's own words."""

import json

import pytest

from graphfcl.errors import InputError
from graphfcl.methods.learner import Explanation
from graphfcl.production import GraphClassifier
from tests.production.models import members


def test_an_explanation_speaks_of_ids_classes_and_features(
    model: GraphClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    node, other = members("class-08")[:2]
    number, near = model.numbers_of([node, other]).tolist()
    asked = []

    def explain(_visible: object, which: int, top: int) -> Explanation:
        asked.append((which, top))
        return Explanation(
            classes=((1, 0.7), (0, 0.3)),
            before_smoothing=(0.6, 0.4),
            blocks={"own features": 1.0},
            features=((3, 0.5),),
            around=((near, 0.25),),
            neighbours=((near, 0.1, 0.9, 0.0),),
        )

    monkeypatch.setattr(model.learner_, "explain", explain)
    found = model.explain(node, top=4)
    assert asked == [(number, 4)]
    assert found == {
        "node": node,
        "classes": [
            {"class": "class-01", "probability": 0.7, "by_itself": 0.6},
            {"class": "class-00", "probability": 0.3, "by_itself": 0.4},
        ],
        "blocks": {"own features": 1.0},
        "features": {"feature_3": 0.5},
        "around": {other: 0.25},
        "neighbours": [{"node": other, "share": 0.1, "probability": 0.9, "adds": 0.0}],
    }
    assert json.loads(json.dumps(found))["node"] == node


def test_a_method_that_cannot_explain_itself_says_so(model: GraphClassifier) -> None:
    with pytest.raises(InputError, match="the method 'proto-gcn' cannot explain itself: fit one of 'anchor'"):
        model.explain(members("class-08")[0])
