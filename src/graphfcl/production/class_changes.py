"""Changes of what a model knows of classes: each works on a draft and says what the history is to tell of it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.graph.ids import listed, normal
from graphfcl.graph.labels import alike_names
from graphfcl.printing import quoted
from graphfcl.production.lesson import prepare
from graphfcl.production.supports import Support

if TYPE_CHECKING:
    from graphfcl.production.draft import Draft

Change = dict[str, Any]


def teach(draft: "Draft", supports: Sequence[Support], on_conflict: str) -> Change | None:
    """Learn from supports; None if no label is new, and the history has its entry already."""
    lesson = prepare(supports, draft.graph, draft.ledger, on_conflict)
    change: Change = {"what": "learn", "new": [], **lesson.as_json()}
    if not lesson.learned:
        draft.ledger = draft.ledger.with_statements(lesson.statements)
        draft.record(change)
        return None
    if lesson.replaced:
        draft.ledger, change["retired"] = draft.ledger.without_nodes(lesson.taken_back).without_empty_classes()
        draft.learner.drop_nodes(lesson.taken_back)
        change["exact"] = draft.restate()
    draft.ledger, change["new"] = draft.using(
        lambda learner: lesson.teach(learner, draft.ledger, draft.graph.visible, len(draft.history))
    )
    new = set(change["new"])
    alike = [group for group in alike_names(draft.ledger.classes) if new.intersection(group)]
    return {**change, "alike": alike} if alike else change


def take_back(draft: "Draft", nodes: Sequence[Any]) -> Change:
    """The labels of some nodes go; a class that loses its last one is retired."""
    numbers = draft.graph.numbers_of(nodes)
    unknown = ~np.isin(numbers, draft.ledger.nodes)
    if unknown.any():
        missing = listed(nodes)[int(np.flatnonzero(unknown)[0])]
        raise InputError(f"node {quoted(missing)} has no label to take back; nothing was changed.")
    draft.ledger, emptied = draft.ledger.without_nodes(numbers).without_empty_classes()
    change = {"what": "unlearn", "nodes": draft.graph.with_own_ids(nodes).tolist(), "retired": emptied}
    draft.learner.drop_nodes(numbers)
    return {**change, "exact": draft.restate()}


def rename_class(draft: "Draft", old: str, new: str) -> None:
    """A class is called otherwise, also in the last accuracy; no answer depends on it."""
    before = draft.ledger
    draft.ledger = before.renamed(old, new)
    old, new = before.resolved(old), normal(new)
    accuracy = draft.history.last_accuracy()
    if accuracy:
        classes = {new if name == old else name: value for name, value in accuracy["classes"].items()}
        accuracy = {**accuracy, "classes": classes}
    draft.record({"what": "rename", "from": old, "to": new}, accuracy)


def merge_classes(draft: "Draft", source: str, into: str) -> Change:
    """All nodes of one class become another's."""
    before = draft.ledger
    source, into = before.resolved(source), before.resolved(into)
    draft.ledger = before.merged(source, into)
    exact = draft.restate()
    if not exact:
        draft.ledger = before.united(source, into)
        draft.restate()
    return {"what": "merge", "from": source, "into": into, "exact": exact}


def retire_class(draft: "Draft", name: str) -> Change:
    """A class goes, and its nodes are without a label."""
    name = draft.ledger.resolved(name)
    draft.ledger = draft.ledger.retired(name)
    return {"what": "retire", "class": name, "exact": draft.restate()}
