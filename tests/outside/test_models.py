"""Methods from outside behind a model: the classifier, its folder, the verbs, and folders that name a trap."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphfcl import GraphClassifier, InputError, Learner, ModelFolder, find_method, load_dataset
from graphfcl.methods import import_method, registry
from tests.cli.command import Result, assert_one_sentence, graphfcl_inside
from tests.outside.samples import GRAPH, nearest_mean
from tests.production.crafting import CraftedFolder


@pytest.fixture
def learner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Learner]]:
    nearest_mean(tmp_path, "behind_a_model")
    monkeypatch.setattr(registry.REGISTRY, "registered", {})
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    sys.path.insert(0, str(tmp_path))
    module = __import__("behind_a_model")
    yield module.NearestMean
    del sys.modules["behind_a_model"]


def test_a_class_can_be_handed_to_the_classifier(learner: type[Learner], tmp_path: Path) -> None:
    graph, _ = load_dataset(GRAPH)
    model = GraphClassifier(learner, {"hops": 1}).fit(graph, hide_classes=["class-08"])
    eight = graph.node_ids[graph.labels == graph.class_number("class-08")].tolist()
    model.learn({"eight": eight[:4]})
    assert (model.predict(eight[4:]) == "eight").mean() > 0.5
    model.add_nodes([9000], np.zeros((1, 100)))
    model.add_edges([9000], [eight[0]])
    model.unlearn(eight[:1])
    assert model.history[-1]["exact"] is False
    with pytest.raises(InputError, match="cannot explain predictions: fit one of 'anchor'"):
        model.explain(eight[0])
    model.save(tmp_path / "model")
    loaded = GraphClassifier.load(tmp_path / "model")
    assert isinstance(loaded.learner_, learner)
    np.testing.assert_allclose(loaded.predict_proba(), model.predict_proba(), rtol=1e-6)

    registry.REGISTRY.registered.clear()
    with pytest.raises(InputError, match=r"'nearest-mean'.*behind_a_model:NearestMean.*add --method"):
        GraphClassifier.load(tmp_path / "model")
    import_method("behind_a_model:NearestMean")
    assert GraphClassifier.load(tmp_path / "model").classes_ == model.classes_


def test_our_own_class_is_our_own_method() -> None:
    model = GraphClassifier(find_method("proto-gcn").learner, {"pretraining.epochs": 3})
    assert model.method == "proto-gcn"
    assert not registry.REGISTRY.registered.get("proto-gcn")


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Result]]:
    """The command line in a user's folder, which forgets between two commands what they brought."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def command(*words: object) -> Result:
        for place in (registry.REGISTRY.registered, registry.REGISTRY.written):
            place.clear()
        sys.modules.pop("nearest_mean", None)
        return graphfcl_inside(*words)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry.REGISTRY, "registered", {})
        patch.setattr(registry.REGISTRY, "written", {})
        yield command
    sys.modules.pop("nearest_mean", None)


OWN = ("--method", "nearest_mean:NearestMean")


def test_every_verb_takes_the_method(tmp_path: Path, inside: Callable[..., Result]) -> None:
    nearest_mean(tmp_path)
    graph, _ = load_dataset(GRAPH)
    eight = graph.node_ids[graph.labels == graph.class_number("class-08")].tolist()
    (tmp_path / "supports.csv").write_text("node,class\n" + "".join(f"{node},eight\n" for node in eight[:4]))
    (tmp_path / "some.csv").write_text(f"node\n{eight[0]}\n")
    (tmp_path / "edges.csv").write_text(f"source,target\n{eight[0]},{eight[5]}\n")
    assert inside("fit", "--graph", GRAPH, "--hide-classes", "class-08", "--model", "m", *OWN).code == 0
    verbs: list[tuple[str, ...]] = [
        ("learn", "supports.csv"),
        ("grow", "--edges", "edges.csv"),
        ("shrink", "--edges", "edges.csv"),
        ("unlearn", "some.csv"),
        ("rename", "eight", "acht"),
        ("merge", "acht", "class-00"),
        ("retire", "class-01"),
        ("rollback", "2"),
        ("predict", "--out", "answers.csv"),
    ]
    for words in verbs:
        assert_one_sentence(inside(*words, "--model", "m"), "add --method nearest_mean:NearestMean")
        assert_one_sentence(
            inside(*words, "--model", "m", "--method", "proto-gcn"), "uses the method 'nearest-mean', not 'proto-gcn'"
        )
        done = inside(*words, "--model", "m", *OWN)
        assert done.code == 0, (words, done.err[-1000:])
    assert_one_sentence(inside("explain", "3", "--model", "m", *OWN), "cannot explain predictions")
    assert inside("history", "--model", "m").code == 0, "a history needs no method"
    assert ModelFolder(tmp_path / "m").current() == 9


def test_edited_code_does_not_answer_with_what_other_code_computed(
    tmp_path: Path, inside: Callable[..., Result]
) -> None:
    path = nearest_mean(tmp_path)
    assert inside("fit", "--graph", GRAPH, "--model", "m", *OWN).code == 0
    predict = ("predict", "--model", "m", "--out", "answers.csv", *OWN)
    same = inside(*predict)
    assert (same.code, same.err) == (0, "")
    before = (tmp_path / "answers.csv").read_bytes()
    path.write_text(path.read_text().replace("return 2 * products", "return -2 * products"))
    other = inside(*predict)
    assert other.code == 0
    assert "note: the model was saved by other code of nearest-mean" in other.err
    assert (tmp_path / "answers.csv").read_bytes() != before


@pytest.mark.parametrize(
    "change",
    [
        {"method": "os:system"},
        {"method": "trap:Learner"},
        {"method": "trap"},
        {"method": "mine", "source": "trap:Learner@0123456789abcdef"},
        {"method": 3},
        {"method": ["trap:Learner"]},
    ],
)
def test_a_folder_may_name_a_method_but_never_import_it(
    tmp_path: Path, change: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = GraphClassifier("sgc-ridge").fit(load_dataset(GRAPH)[0])
    model.save(tmp_path / "saved")
    model.wait()
    folder = CraftedFolder(tmp_path / "saved", tmp_path / "model")
    folder.change_part("answers", lambda part: part["values"].update(change))
    folder.change_manifest(lambda manifest: manifest["values"].update(change))
    (tmp_path / "trap.py").write_text("open('sprung', 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert_one_sentence(graphfcl_inside("predict", "--model", "model", "--out", "answers.csv"))
    assert not (tmp_path / "sprung").exists()
    assert "trap" not in sys.modules
