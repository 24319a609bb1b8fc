"""Changes of what a model knows of classes: each works on a draft and says what the history is to tell of it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphfcl.errors import InputError, quoted
from graphfcl.graph.ids import listed, normal
from graphfcl.graph.labels import alike_names
from graphfcl.production.changes.label_batch import prepare
from graphfcl.production.labels.label_store import LabelRole
from graphfcl.production.labels.supports import Support

if TYPE_CHECKING:
    from graphfcl.production.changes.draft import Draft

Change = dict[str, Any]


def teach(draft: "Draft", supports: Sequence[Support], on_conflict: str) -> Change | None:
    """Learn from supports; None if no label is new, and the history has its entry already."""
    label_batch = prepare(supports, draft.graph, draft.label_store, on_conflict)
    change: Change = {"what": "learn", "new": [], **label_batch.as_json(draft.label_store)}
    if not label_batch.learned:
        draft.label_store = draft.label_store.with_statements(label_batch.statements)
        draft.record(change)
        return None
    if label_batch.replaced:
        trained = draft.label_store.trained_on(label_batch.taken_back)
        draft.label_store, emptied = draft.label_store.without_nodes(label_batch.taken_back).without_empty_classes()
        change["retired"] = [draft.label_store.label(name) for name in emptied]
        draft.learner.drop_nodes(label_batch.taken_back)
        change |= _restated(draft, trained)
    draft.label_store, names = draft.using(
        lambda learner: label_batch.teach(learner, draft.label_store, draft.graph.visible, len(draft.history))
    )
    change["new"], new = [draft.label_store.label(name) for name in names], set(names)
    alike = [group for group in alike_names(draft.label_store.classes) if new.intersection(group)]
    return {**change, "alike": alike} if alike else change


def take_back(draft: "Draft", nodes: Sequence[Any]) -> Change:
    """The labels of some nodes go; a class that loses its last one is retired."""
    numbers = draft.graph.numbers_of(nodes)
    unknown = ~np.isin(numbers, draft.label_store.nodes)
    if unknown.any():
        missing = listed(nodes)[int(np.flatnonzero(unknown)[0])]
        raise InputError(f"node {quoted(missing)} has no label to take back; nothing was changed.")
    trained = draft.label_store.trained_on(numbers)
    draft.label_store, emptied = draft.label_store.without_nodes(numbers).without_empty_classes()
    retired = [draft.label_store.label(name) for name in emptied]
    change = {"what": "unlearn", "nodes": draft.graph.ids_of(numbers).tolist(), "retired": retired}
    draft.learner.drop_nodes(numbers)
    return {**change, **_restated(draft, trained)}


def rename_class(draft: "Draft", old_label: Any, new_label: Any) -> None:
    """Rename a class, also in the last accuracy; no answer depends on it."""
    before = draft.label_store
    draft.label_store = before.renamed(old_label, new_label)
    old, new = before.resolved(old_label), normal(before.text(new_label))
    accuracy = draft.history.last_accuracy()
    if accuracy:
        classes = {new if name == old else name: value for name, value in accuracy["classes"].items()}
        accuracy = {**accuracy, "classes": classes}
    draft.record({"what": "rename", "from": before.label(old), "to": before.label(new)}, accuracy)


def merge_classes(draft: "Draft", source: Any, into: Any) -> Change:
    """Merge one class into another."""
    before = draft.label_store
    source, into = before.resolved(source), before.resolved(into)
    draft.label_store = before.merged(source, into)
    exact = draft.restate()
    if not exact:
        draft.label_store = before.united(source, into)
        draft.restate()
    return {"what": "merge", "from": before.label(source), "into": before.label(into), "exact": exact}


def retire_class(draft: "Draft", label: Any) -> Change:
    """Stop predicting a class; its nodes lose their label."""
    before, name = draft.label_store, draft.label_store.resolved(label)
    draft.label_store = before.retired(name)
    trained = before.trained_on(np.setdiff1d(before.nodes, draft.label_store.nodes))
    return {"what": "retire", "class": draft.label_store.label(name), **_restated(draft, trained)}


def _restated(draft: "Draft", trained: int) -> Change:
    """Restate the learner, and tell whether the model is as if the labels that went had never been given.

    trained: how many of them ``fit`` used; what it trained and chose by them stays. Without a validation node the
    previous calibration stays.
    """
    exact = draft.restate() and not trained and draft.label_store.of_part(LabelRole.VALIDATION)[0].size > 0
    return {"exact": exact, **({"trained": trained} if trained else {})}
