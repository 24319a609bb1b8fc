"""Guards of changes: which classes may be new, and how much accuracy a change may cost."""

import contextlib
import threading
import unicodedata
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphfcl import AccuracyLossError, GraphClassifier, InputError
from graphfcl.production.changes.guards import NewClasses, refuse_new_classes
from graphfcl.production.labels.label_store import LabelStore
from graphfcl.production.labels.statements import Support
from graphfcl.production.model.calibrating import class_recalls
from tests.production.models import copy_of, members, same_answers, with_parts

EIGHT, NINE = members("class-08"), members("class-09")
NONE = np.zeros(0, dtype=np.int64)


def refused(model: GraphClassifier, supports: dict[str, list[int]], new_classes: NewClasses = True) -> str:
    """The message of a refusal, after which the model is as it was."""
    before = model._state
    with pytest.raises(InputError) as error:
        model.learn(supports, new_classes=new_classes)
    assert model._state is before
    return str(error.value)


# New classes


@pytest.mark.parametrize("name", ["Class-00", "class-0 0", " class -00", "CLASS-00", "cláss-00"])
def test_a_name_that_looks_like_a_known_one_is_refused_unless_it_is_allowed(model: GraphClassifier, name: str) -> None:
    message = refused(model, {name: EIGHT[:2]})
    assert f"{name.strip()!r} is a new class, but 'class-00' is known: write 'class-00', or allow it" in message
    assert "--new-class" in message
    refused(model, {name: EIGHT[:2]}, ["another"])
    model.learn({name: EIGHT[:2]}, new_classes=[name])
    assert model.classes_[-1] == name.strip()
    model.learn({name: EIGHT[2:3]}, new_classes=False)
    assert model.history[-1]["new"] == []


def test_no_new_classes(model: GraphClassifier) -> None:
    message = refused(model, {"class-00": EIGHT[:1], "clas-00": EIGHT[1:3], "something": EIGHT[3:4]}, False)
    assert "'clas-00' is a new class (did you mean 'class-00'?); " in message
    assert "'something' is a new class: write a known one" in message
    assert "--new-class clas-00 --new-class something" in message
    assert refused(model, {"something": EIGHT[3:4]}, ()) == refused(model, {"something": EIGHT[3:4]}, [])
    model.learn({"class-00": EIGHT[:1], "eight": EIGHT[1:3]}, new_classes=iter(["eight", "never used"]))
    assert model.history[-1]["new"] == ["eight"]
    assert "'twin' is new too" in refused(model, {"twin": NINE[:1], "Twin": NINE[1:2]})


def test_a_label_that_is_not_learned_starts_no_class(model: GraphClassifier) -> None:
    labelled = members("class-00")[:1]
    model.learn_listed(
        [*_supports({"something": labelled}), *_supports({"class-01": EIGHT[:1]})],
        on_conflict="keep",
        new_classes=False,
    )
    assert model.history[-1]["supports"] == {"class-01": EIGHT[:1]}
    assert "'something' is a new class" in refused(model, {"something": NINE[:1]}, False)


def _supports(classes: dict[str, list[int]]) -> list[Support]:
    return [Support(node, name, "here") for name, nodes in classes.items() for node in nodes]


@pytest.mark.parametrize(("new_classes", "words"), [("eight", "give a list"), ([1.5], "a name or a whole number")])
def test_what_is_no_list_of_classes_is_refused(model: GraphClassifier, new_classes: object, words: str) -> None:
    assert words in refused(model, {"eight": EIGHT[:2]}, new_classes)  # type: ignore[arg-type]


def bare(name: str) -> str:
    """A plain version: no case, no white space, no accents."""
    kept = ""
    for letter in unicodedata.normalize("NFD", name.lower()):
        if not letter.isspace() and unicodedata.category(letter) != "Mn":
            kept += letter
    return kept


NAMES = st.lists(st.text("abAé ", min_size=1, max_size=3).map(str.strip).filter(bool), unique=True, max_size=4)


@settings(max_examples=200, deadline=None)
@given(known=NAMES, table=NAMES, allowed=st.none() | st.booleans() | NAMES)
def test_what_is_refused(known: list[str], table: list[str], allowed: bool | list[str] | None) -> None:
    labels = LabelStore.of((NONE, NONE), (NONE, NONE), known)
    seen, fine = list(known), True
    for name in table:
        if name not in known:
            if isinstance(allowed, list):
                fine &= name in allowed
            else:
                fine &= allowed is not False and bare(name) not in map(bare, seen)
        seen.append(name)
    new_classes = True if allowed is None else allowed
    try:
        refuse_new_classes(dict.fromkeys(table, "here"), labels, new_classes)
        assert fine
    except InputError:
        assert not fine


def test_a_class_may_be_allowed_in_another_spelling_of_a_model_that_folds() -> None:
    for fold in (True, False):
        labels = LabelStore.of((NONE, NONE), (NONE, NONE), ["Moss"], fold=fold)
        places = {labels.names_of(["Rust"])["Rust"]: "here"}
        if fold:
            refuse_new_classes(places, labels, ["RUST"])
        else:
            with pytest.raises(InputError, match="'Rust' is a new class"):
                refuse_new_classes(places, labels, ["RUST"])
        with pytest.raises(InputError, match="'Rust' is a new class"):
            refuse_new_classes(places, labels, ["other", "MOSS"])


def test_a_group_is_named_by_the_same_rules(model: GraphClassifier) -> None:
    groups = model.groups(1)
    if not groups:
        pytest.skip("the model finds no group")
    with pytest.raises(InputError, match="'class-00' is known"):
        model.name_group(groups[0], "Class-00")
    with pytest.raises(InputError, match="is a new class"):
        model.name_group(groups[0], "something", new_classes=False)
    model.name_group(groups[0], "Class-00", new_classes=["Class-00"])
    assert "Class-00" in model.classes_


# Accuracy


RIVALS = {"rival": members("class-00")[:12], "another": members("class-02")[:12]}  # of classes that the model knows


def spoil(model: GraphClassifier) -> None:
    """Make a model lose accuracy."""
    for name, nodes in RIVALS.items():
        model.learn({name: nodes}, on_conflict="replace")


def loss(before: GraphClassifier, after: GraphClassifier, names: Iterable[str]) -> float:
    """A plain version: the mean over classes of the fall of their recall."""
    old, new = (model.accuracy()["classes"] for model in (before, after))
    both = [name for name in names if name in old and name in new]
    return sum(old[name] - new[name] for name in both) / len(both)


def test_a_change_that_costs_too_much_is_not_made(model: GraphClassifier) -> None:
    worse = copy_of(model)
    spoil(worse)
    lost = loss(model, worse, model.classes_)  # type: ignore[arg-type]
    assert lost > 0.01
    kept = copy_of(model)
    with pytest.raises(AccuracyLossError, match=r"known before lost .* points of balanced") as error:  # noqa: SIM117
        with kept.guarded(lost - 0.001):
            spoil(kept)
    assert "'class-0" in str(error.value)
    assert len(kept.history) <= len(model.history) + 1, "only a change that costs less is made"
    with model.guarded(lost + 0.001):
        spoil(model)
    same_answers(model, worse)


def test_all_changes_inside_count_together(model: GraphClassifier) -> None:
    first, second = ({name: nodes} for name, nodes in RIVALS.items())
    once, twice = copy_of(model), copy_of(model)
    once.learn(first, on_conflict="replace")
    spoil(twice)
    one, both = (loss(model, each, model.classes_) for each in (once, twice))  # type: ignore[arg-type]
    assert one < both
    with model.guarded(max(one, both - one) + 0.0001):
        model.learn(first, on_conflict="replace")
        with pytest.raises(AccuracyLossError):
            model.learn(second, on_conflict="replace")
    assert model.accuracy() == once.accuracy()


@pytest.mark.parametrize("inside", [False, True])
def test_a_class_with_another_name_is_guarded_as_before(model: GraphClassifier, inside: bool) -> None:
    wrong = {"class-00": members("class-01")[:30] + members("class-02")[:30]}
    with model.guarded(0.0):
        with model.guarded(1.0) if inside else contextlib.nullcontext():
            for number in range(8):
                model.rename(f"class-{number:02}", f"renamed {number}")
        with pytest.raises(AccuracyLossError, match=r"the 8 classes known before .* 'renamed"):
            model.learn({"renamed 0": wrong["class-00"]}, on_conflict="replace")


def test_guards_around_a_guard_hold_as_well(model: GraphClassifier) -> None:
    with model.guarded(0.0), model.guarded(1.0), pytest.raises(AccuracyLossError, match=r"allows 0\.0 points"):
        spoil(model)


def test_every_kind_of_change_is_guarded(model: GraphClassifier, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a measure that finds nothing right any more."""
    model.learn({"eight": EIGHT[:3]})
    monkeypatch.setattr(
        "graphfcl.production.model.calibrating.class_recalls",
        lambda *values: dict.fromkeys(class_recalls(*values), 0.0),
    )
    for change in (
        lambda: model.learn({"nine": NINE[:2]}),
        lambda: model.unlearn(EIGHT[:1]),
        lambda: model.merge("class-00", "class-01"),
        lambda: model.retire("eight"),
        lambda: model.add_edges(EIGHT[:2], NINE[:2]),
        lambda: model.remove_nodes(EIGHT[:1]),
    ):
        state = model._state
        with pytest.raises(AccuracyLossError), model.guarded(0.5):
            change()
        assert model._state is state
    with model.guarded(0.5):
        model.rename("eight", "acht")  # no answer depends on it


def test_a_guard_is_of_its_thread_and_ends(model: GraphClassifier) -> None:
    def other() -> None:
        model.learn({name: nodes[:6] for name, nodes in RIVALS.items()}, on_conflict="replace")

    with model.guarded(0.0):
        with model.guarded(1.0):
            model.learn({"eight": EIGHT[:3]})
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        with pytest.raises(AccuracyLossError):
            spoil(model)
    spoil(model)
    assert [entry["what"] for entry in model.history[-4:]] == ["learn"] * 4


def test_a_guard_that_cannot_measure_is_refused(model: GraphClassifier) -> None:
    for value in (2, -0.1, float("nan"), True, "much"):
        with pytest.raises(InputError, match="a share of accuracy from 0 to 1"), model.guarded(value):  # type: ignore[arg-type]
            pass
    blind = with_parts(model, history=[])
    with pytest.raises(InputError, match="no class of the model has a validation node"), blind.guarded(0.1):
        pass


def test_validation_nodes_that_all_leave_cannot_hide_a_loss(model: GraphClassifier) -> None:
    validation = model.graph_.ids_of(model.label_store_.nodes[model.label_store_.parts == 1]).tolist()
    with pytest.raises(AccuracyLossError, match="has a validation node any more"), model.guarded(1.0):
        model.unlearn(validation)
