"""What a change would do, without a trace in the folder."""

import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from graphfcl import AccuracyLossError, GraphClassifier, InputError, ModelFolder
from graphfcl.production import Effect
from tests.production.erasures import GONE
from tests.production.graph.folder_models import fit, folder_graph, supports
from tests.production.models import everything, members

EIGHT, NINE = members("class-08"), members("class-09")
Change = Callable[[GraphClassifier], object]

CHANGES: dict[str, Change] = {
    "learn": lambda model: model.learn({"eight": EIGHT[5:7], "nine": NINE[:4]}),
    "nothing new": lambda model: model.learn({"eight": EIGHT[:5]}),
    "unlearn": lambda model: model.unlearn(EIGHT[:2]),
    "rename": lambda model: model.rename("eight", "acht"),
    "merge": lambda model: model.merge("class-00", "class-01"),
    "renames": lambda model: model.rename("class-00", "b").merge("eight", "b").rename("b", "c"),
    "retire": lambda model: model.retire("eight"),
    "grow": lambda model: model.grow(
        nodes=([9000], [{"feature_3": 1}], None), edges=([9000, *EIGHT[:4]], [EIGHT[0], *NINE[:4]])
    ),
    "shrink": lambda model: model.shrink(nodes=[*EIGHT[2:4], *members("class-03")[:9]]),
    "several": lambda model: model.retire("class-00").learn({"nine": NINE[:2]}),
}


def plain(entries: Any) -> list[dict[str, Any]]:
    return [{key: value for key, value in entry.items() if key not in ("version", "when")} for entry in entries]


BECOMES = {"rename": {"eight": "acht"}, "merge": {"class-00": "class-01"}, "renames": {"class-00": "c", "eight": "c"}}


def assert_is_the_effect(
    effect: Effect, before: GraphClassifier, after: GraphClassifier, becomes: dict[str, str] | None = None
) -> None:
    """Compare with what the change did, counted node by node. becomes: renamed and merged classes."""
    assert (effect.version, effect.classes) == (before.version, after.classes_)
    assert plain(effect.changes) == plain(entry for entry in after.history if entry["version"] == after.version)
    assert set(effect.new_classes) == set(after.classes_) - set(before.classes_)
    assert set(effect.gone_classes) == set(before.classes_) - set(after.classes_)
    for accuracy, model in ((effect.accuracy_before, before), (effect.accuracy_after, after)):
        assert accuracy == {key: value for key, value in model.accuracy().items() if key in accuracy}
        assert {"validation", "leave_one_out", "classes"} <= accuracy.keys()
    shared = [node for node in after.node_ids_.tolist() if node in set(before.node_ids_.tolist())]
    old = [(becomes or {}).get(name, name) for name in before.predict(shared).tolist()]
    pairs = Counter(zip(old, after.predict(shared).tolist(), strict=True))
    assert effect.nodes == len(shared)
    assert {(each.before, each.after): each.nodes for each in effect.moves} == {
        pair: count for pair, count in pairs.items() if pair[0] != pair[1]
    }
    assert [each.nodes for each in effect.moves] == sorted((each.nodes for each in effect.moves), reverse=True)
    assert effect.nodes_changed == sum(count for pair, count in pairs.items() if pair[0] != pair[1])


@pytest.mark.parametrize("name", CHANGES)
def test_it_says_what_the_change_does(folder: Path, name: str) -> None:
    before, content = GraphClassifier.load(folder), everything(folder)
    before.wait()
    effect = ModelFolder(folder).dry_run(CHANGES[name])
    assert everything(folder) == content
    with ModelFolder(folder).editing(write_cache=False) as model:
        CHANGES[name](model)
    assert_is_the_effect(effect, before, GraphClassifier.load(folder), BECOMES.get(name))
    if name == "rename":
        assert effect.nodes_changed == 0


def test_a_refit(folder: Path) -> None:
    before, content = GraphClassifier.load(folder), everything(folder)
    answers = before.predict()
    effect = ModelFolder(folder).dry_run(lambda model: model.refit(anyway=True))
    assert everything(folder) == content
    assert [entry["what"] for entry in effect.changes] == ["refit"]
    ModelFolder(folder).refit(anyway=True)
    after = GraphClassifier.load(folder)
    assert effect.nodes_changed == int((answers != after.predict()).sum())


def test_a_rollback(folder: Path) -> None:
    before, content = GraphClassifier.load(folder), everything(folder)
    effect = ModelFolder(folder).dry_rollback(1)
    assert everything(folder) == content
    ModelFolder(folder).rollback(1)
    assert_is_the_effect(effect, before, GraphClassifier.load(folder))
    with pytest.raises(InputError, match="has no version 9"):
        ModelFolder(folder).dry_rollback(9)


def test_pruning_and_erasing_report_what_they_would_do(folder: Path, six: Path, tmp_path: Path) -> None:
    content = everything(folder)
    would = ModelFolder(folder).prune(1, dry_run=True)
    assert everything(folder) == content
    assert would == ModelFolder(folder).prune(1)
    assert would.freed > 0
    people = Path(shutil.copytree(six, tmp_path / "people"))
    content = everything(people)
    erased = ModelFolder(people).erase([GONE], dry_run=True)
    with pytest.raises(InputError, match="no version"):
        ModelFolder(people).erase(["nobody"], dry_run=True)
    assert everything(people) == content
    assert asdict(erased) == asdict(ModelFolder(people).erase([GONE]))


def test_it_does_not_wait_for_a_writer_and_needs_no_right_to_write(folder: Path) -> None:
    with ModelFolder(folder).writing():
        ModelFolder(folder).dry_run(CHANGES["learn"])
        ModelFolder(folder).dry_rollback(1)
        ModelFolder(folder).prune(1, dry_run=True)
        ModelFolder(folder).erase(EIGHT[:1], dry_run=True)
    (folder / "lock").unlink()
    ModelFolder(folder).dry_run(CHANGES["learn"])
    assert not (folder / "lock").exists()


def test_what_refuses_the_change_refuses_the_dry_run(folder: Path, tmp_path: Path) -> None:
    def costly(model: GraphClassifier) -> None:
        with model.guarded(0.0):
            model.learn(
                {f"rival {name}": members(name)[:30] for name in ("class-00", "class-02")}, on_conflict="replace"
            )

    content = everything(folder)
    with pytest.raises(AccuracyLossError):
        ModelFolder(folder).dry_run(costly)
    with pytest.raises(InputError, match="is a new class, but 'eight' is known"):
        ModelFolder(folder).dry_run(lambda model: model.learn({"Eight": NINE[:1]}))
    assert everything(folder) == content
    with pytest.raises(InputError, match="does not exist"):
        ModelFolder(tmp_path / "none").dry_run(CHANGES["learn"])
    assert not (tmp_path / "none").exists()


# On graph folders


@pytest.mark.parametrize("has_answers", [True, False])
def test_a_model_on_a_graph_folder(tmp_path: Path, has_answers: bool) -> None:
    graph = folder_graph(tmp_path / "graph", tmp_path / "work")
    more, root = supports(graph), tmp_path / "model"
    fit(graph).save(root)
    if not has_answers:
        shutil.rmtree(tmp_path / "work")
        (tmp_path / "work").mkdir()
    before_all = everything(tmp_path)
    changes: list[Change] = [
        lambda model: model.learn(more),
        lambda model: model.add_edges(more["class 7"][:2], more["class 8"][:2]),
        lambda model: model.remove_nodes(more["class 7"][:2]),
    ]
    for change in changes:
        effect = ModelFolder(root).dry_run(change)
        assert everything(tmp_path) == before_all
        copy = tmp_path / "copy"
        shutil.copytree(root, copy)
        with ModelFolder(copy).editing(write_cache=False) as model:
            change(model)
        after = GraphClassifier.load(copy)
        before = GraphClassifier.load(root)
        assert_is_the_effect(effect, before, after)
        shutil.rmtree(copy)
        shutil.rmtree(tmp_path / "work")
        (tmp_path / "work").mkdir()
        before_all = everything(tmp_path)


def test_a_guard_measures_at_once_on_a_graph_folder(tmp_path: Path) -> None:
    graph = folder_graph(tmp_path / "graph", tmp_path / "work")
    more = supports(graph)
    fit(graph).save(tmp_path / "model")
    with ModelFolder(tmp_path / "model").editing() as model, model.guarded(1.0):
        model.learn(more)
    assert model.history[-1]["accuracy"]["validation"] is not None
    loaded = GraphClassifier.load(tmp_path / "model")
    assert loaded.has_answers, "the next reader makes no pass"
    assert loaded.accuracy() == model.history[-1]["accuracy"]
    rivals = {f"rival {number}": graph.node_ids[graph.labels == number][::2].tolist() for number in range(4)}
    with pytest.raises(AccuracyLossError), ModelFolder(tmp_path / "model").editing() as model, model.guarded(0.0):
        model.learn(rivals, on_conflict="replace")
    assert ModelFolder(tmp_path / "model").current() == 2
