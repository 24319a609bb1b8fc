"""Supports checked against what a model knows: what is new, what two people agree on, and what they disagree on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphfcl.errors import InputError, quoted, shown
from graphfcl.graph import VisibleNodes
from graphfcl.graph.ids import ClassLabel, list_of_nodes, normal
from graphfcl.methods import Learner
from graphfcl.production.graph import ModelGraph
from graphfcl.production.labels.label_store import LabelStore, Statement, Statements, Support, people
from graphfcl.stream import Session

LISTED = 20  # faults named in a message; conflicts are all named
ON_CONFLICT = ("refuse", "keep", "replace")


@dataclass(frozen=True)
class Conflict:
    """A node that has a label, and a support that says otherwise."""

    node: Any
    label: ClassLabel
    label_by: str
    said: ClassLabel
    said_by: str
    place: str

    def as_json(self) -> dict[str, Any]:
        return {
            "node": self.node,
            "label": self.label,
            "label_by": self.label_by,
            "said": self.said,
            "said_by": self.said_by,
        }

    def __str__(self) -> str:
        return (
            f"{self.place}: node {quoted(self.node)} is labelled {quoted(self.label)} already{_named(self.label_by)}, "
            f"here it is {quoted(self.said)}{_named(self.said_by)}"
        )


@dataclass(frozen=True)
class Said:
    """All that the supports say of one node: its number and id, one class, and who says so."""

    number: int
    node: Any
    name: str
    place: str
    statements: tuple[Statement, ...]


@dataclass(frozen=True)
class LabelBatch:
    """What is to be learned of some supports.

    learned: nodes that get a label, those of ``replaced`` among them. agreed: nodes whose label stands, and is said
    again by somebody else. replaced: nodes whose label of now goes. conflicts: those that were settled. known: nodes
    whose label stands, and of which nothing new is said.
    """

    learned: tuple[Said, ...]
    agreed: tuple[Said, ...]
    replaced: tuple[Said, ...]
    conflicts: tuple[Conflict, ...]
    known: tuple[Said, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The class of each node that is learned."""
        return tuple(each.name for each in self.learned)

    @property
    def statements(self) -> Statements:
        """What is said of the labels, by node number."""
        return {each.number: each.statements for each in (*self.learned, *self.agreed) if any(each.statements)}

    @property
    def taken_back(self) -> np.ndarray:
        """(k,) numbers of the nodes whose label of now goes."""
        return np.array([each.number for each in self.replaced], dtype=np.int64)

    def teach(
        self, learner: Learner, label_store: LabelStore, visible: VisibleNodes, number: int
    ) -> tuple[LabelStore, list[str]]:
        """Let a learner learn; the label_store that knows of it, and the names of the classes that are new.

        label_store: without the labels that are taken back. number: of the session.
        """
        new = [name for name in dict.fromkeys(self.names) if label_store.column_of(name) is None]
        label_store = label_store.with_supports(np.zeros(0, np.int64), np.zeros(0, np.int64), new)
        column_of = {name: label_store.require(name) for name in set(self.names)}
        columns = np.array([column_of[name] for name in self.names], dtype=np.int64)
        nodes = np.array([each.number for each in self.learned], dtype=np.int64)
        order = np.argsort(columns, kind="stable")
        earlier, earlier_labels = label_store.labels_of_columns(columns)
        learner.learn(
            Session(
                number,
                tuple(new),
                nodes[order],
                columns[order],
                visible,
                "open",
                earlier=earlier,
                earlier_labels=earlier_labels,
            )
        )
        return label_store.with_supports(nodes[order], columns[order], ()).with_statements(self.statements), new

    def as_json(self, label_store: LabelStore) -> dict[str, Any]:
        """What the history says of it. label_store: says how users write the classes; the keys of JSON are texts."""
        supports: dict[str, list[Any]] = {}
        for each in self.learned:
            supports.setdefault(each.name, []).append(each.node)
        said = [
            {"node": each.node, "class": label_store.label(each.name), **statement.as_json()}
            for each in (*self.learned, *self.agreed)
            for statement in each.statements
            if statement
        ]
        entry: dict[str, Any] = {"supports": supports}
        if said:
            entry["statements"] = said
        if self.agreed:
            entry["agreed"] = [each.node for each in self.agreed]
        if self.known:
            entry["known"] = [each.node for each in self.known]
        if self.conflicts:
            entry["conflicts"] = [conflict.as_json() for conflict in self.conflicts]
            entry["settled"] = "replace" if self.replaced else "keep"
        return entry


def supports_of(classes: Mapping[Any, Sequence[Any]], statement: Statement, label_store: LabelStore) -> list[Support]:
    """Supports of a mapping from classes to nodes, in which each class stands once."""
    if not isinstance(classes, Mapping):
        raise InputError(
            f"the supports are {shown(classes)}: give classes with lists of their nodes, such as "
            '{"shoes": ["p1", "p2"]}, or a DataFrame with the columns node and class; nothing was learned.'
        )
    lists = {name: list_of_nodes(nodes, f"the nodes of class {quoted(name)}") for name, nodes in classes.items()}
    empty = [name for name, nodes in lists.items() if len(nodes) == 0]
    if empty:
        raise InputError(f"class {quoted(empty[0])} has no node: give at least one; nothing was learned.")
    spelled: dict[str, Any] = {}
    for name in lists:
        other = spelled.setdefault(label_store.found(name) or normal(label_store.text(name)), name)
        if other is not name:
            raise InputError(f"{quoted(other)} and {quoted(name)} are one class once cleaned: join their nodes.")
    return [
        Support(node, label_store.text(name), f"class {quoted(name)}", statement)
        for name, nodes in lists.items()
        for node in nodes
    ]


def prepare(supports: Sequence[Support], graph: ModelGraph, label_store: LabelStore, on_conflict: str) -> LabelBatch:
    """Refuses all supports if one is wrong, and names each that is.

    on_conflict: what becomes of a node that has another label: ``refuse`` everything, ``keep`` the label it has, or
    ``replace`` it.
    """
    if on_conflict not in ON_CONFLICT:
        raise InputError(f"a conflict is settled by {', '.join(ON_CONFLICT)}, not by {on_conflict!r}: choose one.")
    if not supports:
        raise InputError("there is nothing to learn: give at least one node and its class.")
    said, wrong = _gathered(supports, graph, label_store)
    column_of = dict(zip(label_store.nodes.tolist(), label_store.columns.tolist(), strict=True))
    learned, agreed, replaced, conflicts, again = [], [], [], [], []
    for each in said:
        label = label_store.names[column_of[each.number]] if each.number in column_of else None
        known = label_store.statements.get(each.number, ())
        names = {one.by for one in known} | {""}
        fresh = tuple(one for one in each.statements if one.by not in names)
        if label is None:
            learned.append(each)
        elif label != each.name:
            replaced.append(each)
            who = (people(known), people(each.statements))
            said_label = label_store.label(each.name)
            conflicts.append(Conflict(each.node, label_store.label(label), who[0], said_label, who[1], each.place))
        elif fresh:
            agreed.append(replace(each, statements=fresh))
        else:
            again.append(each)
    _refuse(wrong, conflicts if on_conflict == "refuse" else [])
    if on_conflict == "keep":
        replaced = []
    return LabelBatch((*learned, *replaced), tuple(agreed), tuple(replaced), tuple(conflicts), tuple(again))


def _gathered(supports: Sequence[Support], graph: ModelGraph, label_store: LabelStore) -> tuple[list[Said], list[str]]:
    """What is said of each node, and a sentence for each support that cannot be used."""
    rows = graph.rows_of_ids([support.node for support in supports])
    name_of = {
        name: label_store.found(name) or normal(label_store.text(name))
        for name in {support.class_name for support in supports}
    }
    said: dict[int, Said] = {}
    wrong = []
    for support, row in zip(supports, rows.tolist(), strict=True):
        fault = _fault(support, row, label_store)
        if fault:
            wrong.append(f"{support.place}: {fault}")
            continue
        number, node = int(graph.numbers_at([row])[0]), graph.ids_at([row]).tolist()[0]
        name = name_of[support.class_name]
        one = Said(number, node, name, support.place, (support.statement,))
        other = said.setdefault(number, one)
        if other is one:
            continue
        if other.name == name:
            said[number] = _joined(other, support.statement)
            continue
        wrong.append(
            f"{support.place}: node {quoted(node)} stands in {other.place} and has the class {quoted(other.name)}"
            f"{_named(people(other.statements))}, here it is {quoted(name)}{_named(people(one.statements))}"
        )
    return list(said.values()), wrong


def _joined(said: Said, statement: Statement) -> Said:
    """The same label again: another person is added, a name takes the place of none, all else says nothing new."""
    names = {each.by for each in said.statements}
    if not statement.by or statement.by in names:
        return said
    named = tuple(each for each in said.statements if each.by)
    return replace(said, statements=(*named, statement))


def _fault(support: Support, row: int, label_store: LabelStore) -> str:
    if not support.class_name.strip():
        return f"node {quoted(support.node)} has an empty class"
    if row < 0:
        return f"node {quoted(support.node)} is not in the graph"
    # A class of an old folder is called as it is stored, whatever that is.
    return "" if support.class_name in label_store.names else label_store.fault(label_store.text(support.class_name))


def _named(who: str) -> str:
    return f" (by {who})" if who else ""


def _refuse(wrong: list[str], conflicts: list[Conflict]) -> None:
    if not wrong and not conflicts:
        return
    more = [f"and {len(wrong) - LISTED} more"] if len(wrong) > LISTED else []
    sentences = [*wrong[:LISTED], *more, *map(str, conflicts)]
    settle = ", or settle the conflicts with --on-conflict (on_conflict in Python) keep or replace" if conflicts else ""
    raise InputError(f"{'; '.join(sentences)}. Fix these{settle}; nothing was learned.")
