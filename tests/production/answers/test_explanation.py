"""Explanations in the user's own words."""

import json

import pytest

from graphfcl import Explanation, GraphClassifier, InputError
from tests.production.models import fitted, members


def test_an_explanation_speaks_of_ids_classes_and_features(
    model: GraphClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    node, other = members("class-08")[:2]
    number, near = model.numbers_of([node, other]).tolist()
    asked = []

    def explain(_visible: object, which: int, top: int, columns: list[int]) -> Explanation:
        asked.append((which, top, len(columns)))
        return Explanation(
            classes=tuple((column, 1 / 4) for column in columns),
            before_smoothing=tuple([0.4, 0.6] + [0.0] * 6),
            blocks={"own features": 1.0},
            features=((3, 0.5),),
            around=((near, 0.25),),
            neighbours=((near, 0.1, 0.9, 0.0),),
        )

    monkeypatch.setattr(model.learner_, "explain", explain)
    found = model.explain(node, top=4)
    assert asked == [(number, 4, 4)]
    shown = found.pop("classes")
    answered = dict(zip(model.classes_, model.predict_proba([node])[0], strict=True))
    assert [each["class"] for each in shown] == sorted(answered, key=answered.__getitem__, reverse=True)[:4]
    for each in shown:
        assert each["probability"] == pytest.approx(answered[each["class"]])
    own = {each["class"]: each["by_itself"] for each in model.explain(node, top=8)["classes"]}
    assert own["class-01"] > own["class-00"] > own["class-02"]
    assert found == {
        "node": node,
        "blocks": {"own features": 1.0},
        "features": {"feature_3": 0.5},
        "around": {other: 0.25},
        "neighbours": [{"node": other, "share": 0.1, "probability": 0.9, "adds": 0.0}],
    }
    assert json.loads(json.dumps(found))["node"] == node


def test_a_method_that_cannot_explain_itself_says_so(model: GraphClassifier) -> None:
    with pytest.raises(InputError, match="the method 'proto-gcn' cannot explain predictions: fit one of 'anchor'"):
        model.explain(members("class-08")[0])


def test_explain_and_predict_say_one_number() -> None:
    model = fitted("anchor").learn({"eight": members("class-08")[:5]})
    found = model.prediction_columns()
    for place in range(0, 500, 50):
        explained = model.explain(found["node"][place])["classes"]
        assert explained[0]["class"] == found["class"][place]
        assert explained[0]["probability"] == pytest.approx(found["probability"][place])
        assert [each["probability"] for each in explained] == sorted(
            (each["probability"] for each in explained), reverse=True
        )


@pytest.mark.parametrize("method", ["anchor", "sgc-ridge"])
def test_merged_classes_are_compared_as_one(method: str) -> None:
    """The class that was merged into another has a column of its own, which is not compared with the other one."""
    model = fitted(method)
    model.merge("class-01", "class-00")
    nodes = model.node_ids_[model.predict() == "class-00"][:20]
    assert nodes.size == 20
    for node in nodes:
        first, second = (each["class"] for each in model.explain(node, top=2)["classes"])
        assert first == "class-00" != second


def test_a_neighbour_has_the_probability_of_its_own_answer() -> None:
    model = fitted("sgc-ridge").learn({"eight": members("class-08")[:5]})
    for node in members("class-08")[5:40:7]:
        found = model.explain(node, top=3)
        first = found["classes"][0]["class"]
        assert first == model.predict([node])[0]
        assert len(found["features"]) == 3
        for each in found["neighbours"]:
            (expected,) = model.predict_proba([each["node"]])[:, model.classes_.index(first)]
            assert each["probability"] == pytest.approx(expected)
        assert json.dumps(found)
