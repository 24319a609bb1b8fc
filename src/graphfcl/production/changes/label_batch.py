"""Check supports against the labels of a model: which are new, repeat a label, or contradict one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphfcl.errors import InputError, quoted, shown
from graphfcl.graph import VisibleNodes
from graphfcl.graph.ids import ClassLabel, list_of_nodes
from graphfcl.methods import Learner
from graphfcl.production.changes.guards import NewClasses, refuse_new_classes
from graphfcl.production.graph import ModelGraph
from graphfcl.production.labels.label_store import LabelStore
from graphfcl.production.labels.statements import Statement, Statements, Support, people
from graphfcl.stream import Session

LISTED = 20  # faults named in a message; conflicts are all named
ON_CONFLICT = ("refuse", "keep", "replace")


@dataclass(frozen=True)
class Conflict:
    """A node with a label, and a support that gives it another class.

    Attributes:
        node: Id of the node.
        label: The label that the node has.
        statements: Who gave this label.
        new_label: Class of the support.
        new_statements: Who gave the support.
        place: Where the support is written, for messages.
        earlier: Where the other label is written, if it is a support of the same batch; empty if the model has it.
    """

    node: Any
    label: ClassLabel
    statements: tuple[Statement, ...]
    new_label: ClassLabel
    new_statements: tuple[Statement, ...]
    place: str
    earlier: str = ""

    def as_json(self) -> dict[str, Any]:
        return {
            "node": self.node,
            "label": self.label,
            "statements": [each.as_json() for each in self.statements],
            "new_label": self.new_label,
            "new_statements": [each.as_json() for each in self.new_statements],
        }

    def __str__(self) -> str:
        label, place = quoted(self.label), self.earlier
        has = f"is labelled {label} in {place}" if place else f"is labelled {label} already"
        return (
            f"{self.place}: node {quoted(self.node)} {has}{_by(self.statements)}, "
            f"here it is {quoted(self.new_label)}{_by(self.new_statements)}"
        )


@dataclass(frozen=True)
class NodeLabel:
    """All supports of one node that give it the same class.

    Attributes:
        number: Number of the node.
        node: Id of the node.
        name: The class.
        place: Where the first support is written.
        statements: Who gave the supports.
    """

    number: int
    node: Any
    name: str
    place: str
    statements: tuple[Statement, ...]


@dataclass(frozen=True)
class LabelBatch:
    """What is to be learned from some supports.

    Attributes:
        learned: Nodes that get a label, including those in ``replaced``.
        confirmed: Nodes to which another person gives the label that they have.
        replaced: Nodes whose current label is removed.
        conflicts: Conflicts that ``on_conflict`` resolved.
        unchanged: Nodes whose label is repeated without new information.
        on_conflict: How conflicts were resolved.
    """

    learned: tuple[NodeLabel, ...]
    confirmed: tuple[NodeLabel, ...]
    replaced: tuple[NodeLabel, ...]
    conflicts: tuple[Conflict, ...]
    unchanged: tuple[NodeLabel, ...]
    on_conflict: str

    @property
    def statements(self) -> Statements:
        """Who gave the labels, by node number."""
        return {each.number: each.statements for each in (*self.learned, *self.confirmed) if any(each.statements)}

    def teach(
        self, learner: Learner, labels: LabelStore, visible: VisibleNodes, number: int
    ) -> tuple[LabelStore, list[str]]:
        """Teach a learner; returns the label store with the new labels, and the names of new classes.

        ``labels`` must not contain the labels that are replaced. ``number`` is the number of the session.
        """
        new = [name for name in dict.fromkeys(each.name for each in self.learned) if name not in labels.names]
        labels = labels.with_supports(np.zeros(0, np.int64), np.zeros(0, np.int64), new)
        column_of = {name: labels.names.index(name) for name in {each.name for each in self.learned}}
        columns = np.array([column_of[each.name] for each in self.learned], dtype=np.int64)
        order = np.argsort(columns, kind="stable")
        nodes = np.array([each.number for each in self.learned], dtype=np.int64)[order]
        columns = columns[order]
        earlier, earlier_labels = labels.labels_of_columns(columns)
        learner.learn(
            Session(number, tuple(new), nodes, columns, visible, "open", earlier=earlier, earlier_labels=earlier_labels)
        )
        return labels.with_supports(nodes, columns, ()).with_statements(self.statements), new

    def as_json(self, labels: LabelStore) -> dict[str, Any]:
        """Return the fields of the history entry; ``labels`` converts class names to the form that users write."""
        supports: dict[str, list[Any]] = {}
        for each in self.learned:
            supports.setdefault(each.name, []).append(each.node)
        entry: dict[str, Any] = {
            "supports": supports,
            "statements": [
                {"node": each.node, "class": labels.label(each.name), **statement.as_json()}
                for each in (*self.learned, *self.confirmed)
                for statement in each.statements
                if statement
            ],
            "confirmed": [each.node for each in self.confirmed],
            "unchanged": [each.node for each in self.unchanged],
            "conflicts": [conflict.as_json() for conflict in self.conflicts],
        }
        entry = {key: value for key, value in entry.items() if value or key == "supports"}
        return {**entry, "on_conflict": self.on_conflict} if self.conflicts else entry


def supports_of(classes: Mapping[Any, Sequence[Any]], statement: Statement, labels: LabelStore) -> list[Support]:
    """Make supports from a mapping of classes to nodes; two keys must not be spellings of the same class."""
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
    for name, own in labels.names_of(list(lists)).items():
        other = spelled.setdefault(own, name)
        if other is not name:
            raise InputError(f"{quoted(other)} and {quoted(name)} are one class once cleaned: join their nodes.")
    return [
        Support(node, labels.text(name), f"class {quoted(name)}", statement)
        for name, nodes in lists.items()
        for node in nodes
    ]


def make_batch(
    supports: Sequence[Support],
    graph: ModelGraph,
    labels: LabelStore,
    on_conflict: str,
    new_classes: NewClasses = True,
) -> LabelBatch:
    """Compare supports with the labels of a model. If any is wrong, all are refused and the error names the wrong ones.

    Args:
        supports: The supports.
        graph: Graph of the model.
        labels: Labels of the model.
        on_conflict: If a node has another label, ``refuse`` all supports, ``keep`` the label it has, or ``replace`` it.
            If supports of one node contradict each other, ``keep`` learns the first and ``replace`` the last.
        new_classes: See :func:`refuse_new_classes`.

    Returns:
        What is to be learned.
    """
    if on_conflict not in ON_CONFLICT:
        raise InputError(f"on_conflict is {on_conflict!r}: choose one of {', '.join(ON_CONFLICT)}.")
    if not supports:
        raise InputError("there is nothing to learn: give at least one node and its class.")
    by_node, wrong = _by_node(supports, graph, labels)
    column_of = dict(zip(labels.nodes.tolist(), labels.columns.tolist(), strict=True))
    accepted = set(labels.nodes[labels.accepted()].tolist())
    learned, confirmed, replaced, conflicts, unchanged = [], [], [], [], []
    for new in by_node:
        number, node = new[0].number, new[0].node
        name = labels.names[column_of[number]] if number in column_of else None
        known = None if name is None else NodeLabel(number, node, name, "", labels.statements.get(number, ()))
        label, of_node = _resolve(known, new, on_conflict, labels)
        conflicts += of_node
        if label is known:
            continue
        if known is None or (label.name == known.name and number in accepted):
            learned.append(label)
        elif label.name != known.name:
            replaced.append(label)
        else:
            people_before = {statement.by for statement in known.statements} | {""}
            further = tuple(statement for statement in label.statements if statement.by not in people_before)
            if further:
                confirmed.append(replace(label, statements=further))
            else:
                unchanged.append(label)
    _refuse(wrong, conflicts if on_conflict == "refuse" else [])
    places: dict[str, str] = {}
    for each in (*learned, *replaced):
        places.setdefault(each.name, each.place)
    refuse_new_classes(places, labels, new_classes)
    learned += replaced
    return LabelBatch(
        tuple(learned), tuple(confirmed), tuple(replaced), tuple(conflicts), tuple(unchanged), on_conflict
    )


def _by_node(
    supports: Sequence[Support], graph: ModelGraph, labels: LabelStore
) -> tuple[list[list[NodeLabel]], list[str]]:
    """Return the labels of each node, one for each class that it is given, and a sentence for each unusable support."""
    rows = graph.rows_of_ids([support.node for support in supports])
    name_of = labels.names_of([support.class_name for support in supports])
    by_number: dict[int, dict[str, NodeLabel]] = {}
    wrong = []
    for support, row in zip(supports, rows.tolist(), strict=True):
        fault = _fault(support, row, labels)
        if fault:
            wrong.append(f"{support.place}: {fault}")
            continue
        number, node = int(graph.numbers_at([row])[0]), graph.ids_at([row]).tolist()[0]
        label = NodeLabel(number, node, name_of[support.class_name], support.place, (support.statement,))
        by_name = by_number.setdefault(number, {})
        same = by_name.get(label.name)
        by_name[label.name] = label if same is None else _with_statement(same, support.statement)
    return [list(by_name.values()) for by_name in by_number.values()], wrong


def _resolve(
    known: NodeLabel | None, new: list[NodeLabel], on_conflict: str, labels: LabelStore
) -> tuple[NodeLabel, list[Conflict]]:
    """Apply the new labels of a node to the label that it has (``known``), one after the other.

    Returns the resulting label, and the conflicts on the way. The result is ``known`` itself if that stays and no new
    label repeats it.
    """
    label, conflicts = known, []
    for each in new:
        if label is None or each.name == label.name:
            label = each
            continue
        both = (labels.label(label.name), label.statements, labels.label(each.name), each.statements)
        conflicts.append(Conflict(each.node, *both, each.place, label.place))
        label = each if on_conflict == "replace" else label
    assert label is not None, "there is no new label"
    return label, conflicts


def _with_statement(label: NodeLabel, statement: Statement) -> NodeLabel:
    """Add a repeated label: a new person is added, a name replaces a missing one, anything else changes nothing."""
    if not statement.by or statement.by in {each.by for each in label.statements}:
        return label
    return replace(label, statements=(*(each for each in label.statements if each.by), statement))


def _fault(support: Support, row: int, labels: LabelStore) -> str:
    if not support.class_name.strip():
        return f"node {quoted(support.node)} has an empty class"
    if row < 0:
        return f"node {quoted(support.node)} is not in the graph"
    # An existing class may be named as it is stored, whatever that is.
    return "" if support.class_name in labels.names else labels.fault(labels.text(support.class_name))


def _by(statements: tuple[Statement, ...]) -> str:
    who = people(statements)
    return f" (by {who})" if who else ""


def _refuse(wrong: list[str], conflicts: list[Conflict]) -> None:
    if not wrong and not conflicts:
        return
    more = [f"and {len(wrong) - LISTED} more"] if len(wrong) > LISTED else []
    sentences = [*wrong[:LISTED], *more, *map(str, conflicts)]
    resolve = ", or resolve conflicts with --on-conflict (on_conflict in Python) keep or replace" if conflicts else ""
    raise InputError(f"{'; '.join(sentences)}. Fix these{resolve}; nothing was learned.")
