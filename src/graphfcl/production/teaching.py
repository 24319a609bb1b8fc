"""Changes of labels and classes: learn, accept, review, unlearn, rename, merge, retire."""

import datetime
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from graphfcl.graph.ids import ClassLabel
from graphfcl.graph.tables.frames import is_table
from graphfcl.production.answering import AnsweringModel
from graphfcl.production.labels.label_store import REVIEWED, Statement, Support

if TYPE_CHECKING:  # predictions do not import what only a change needs
    from graphfcl.production.changes.guards import NewClasses
    from graphfcl.production.labelling.groups import Group


class TeachableModel(AnsweringModel):
    """A model whose labels and classes can be changed. Each method is one change; an error changes nothing."""

    def learn(
        self,
        supports: Any,
        *,
        by: str = "",
        when: str | datetime.date = "",
        on_conflict: str = "refuse",
        new_classes: "NewClasses" = True,
    ) -> Self:
        """Learn classes from labelled nodes: ``{"class name": [node ids]}``; a known class gets more supports.

        supports: such a mapping, a DataFrame, or the Path of a table, with the columns ``node`` and ``class``, or those
        of the tables of the fit; its columns ``by``, ``when`` and those that the fit did not have are kept with the
        labels. by, when: who gave the labels and when. on_conflict, new_classes: see :meth:`learn_listed`.
        """
        if is_table(supports):
            from graphfcl.production.changes.user_tables import read_supports

            columns, graph = self._columns(), self._current().parts.graph
            listed = read_supports(supports, columns, graph=graph, by=by, when=when, classes=self.classes_)
        else:
            from graphfcl.production.changes.label_batch import supports_of

            statement = Statement.of(by, when, {}, "the supports")
            listed = supports_of(supports, statement, self._current().parts.label_store)
        return self.learn_listed(listed, on_conflict=on_conflict, new_classes=new_classes)

    def learn_listed(
        self, supports: Sequence[Support], *, on_conflict: str = "refuse", new_classes: "NewClasses" = True
    ) -> Self:
        """Learn from a list of supports, each with its place in a table and who gave it.

        on_conflict: if a node has another label, ``refuse`` all supports, ``keep`` the label it has, or ``replace`` it.
        A label that another person gives again is stored once, with both names.
        new_classes: which classes may be new. True: any whose name differs from all known ones by more than case, white
        space and accents; others are refused. A list: the classes in it, whatever they look like, and no other. False:
        none.
        """
        with self._change() as draft:
            draft.learn(supports, on_conflict, new_classes)
        return self

    def name_group(
        self,
        group: "Group",
        name: ClassLabel,
        *,
        nodes: Sequence[Any] | None = None,
        by: str = "",
        when: str | datetime.date = "",
        new_classes: "NewClasses" = True,
    ) -> Self:
        """Teach a group of :meth:`groups` as a class.

        nodes: the members to learn, all of them; None: ``shot`` typical, diverse ones. That they were members of a
        group is kept with the labels. by, when: see :meth:`learn`. new_classes: see :meth:`learn_listed`.
        """
        from graphfcl.production.changes.label_batch import supports_of
        from graphfcl.production.labelling.groups import supports_of_group

        state = self._current()
        ids = supports_of_group(state, group, self.shot, nodes)
        statement = Statement.of(by, when, {"reason": group.reason}, "the group")
        return self.learn_listed(supports_of({name: ids}, statement, state.parts.label_store), new_classes=new_classes)

    def accept(self, nodes: Sequence[Any], *, by: str = "", when: str | datetime.date = "", reason: str = "") -> Self:
        """Store the predicted classes of unlabelled nodes as accepted labels.

        The model does not learn from accepted labels, and is neither calibrated nor measured with them: no answer
        changes. :meth:`unlearn` takes them back, and :meth:`learn` turns them into labels that were given.
        by, when, reason: who accepted them, when and why.
        """
        statement = Statement.of(by, when, {"reason": reason}, "the accepted labels")
        nodes = self._ids(nodes)
        with self._change() as draft:
            draft.accept(nodes, statement)
        return self

    def review(self, nodes: Sequence[Any], *, by: str = "", when: str | datetime.date = "") -> Self:
        """Mark the labels of some nodes as reviewed: :meth:`label_issues` does not list them again.

        That is kept with the label until it is replaced or taken back. by, when: who looked at them and when.
        """
        statement = Statement.of(by, when, {REVIEWED: "kept"}, "the review")
        nodes = self._ids(nodes)
        with self._change() as draft:
            draft.review(nodes, statement)
        return self

    def unlearn(self, nodes: Sequence[Any]) -> Self:
        """Take back the labels of some nodes; a class that loses its last one is retired."""
        nodes = self._ids(nodes)
        with self._change() as draft:
            draft.unlearn(nodes)
        return self

    def rename(self, old: ClassLabel, new: ClassLabel) -> Self:
        """Rename a class; nothing else changes."""
        with self._change() as draft:
            draft.rename(old, new)
        return self

    def merge(self, source: ClassLabel, into: ClassLabel) -> Self:
        """Merge one class into another."""
        with self._change() as draft:
            draft.merge(source, into)
        return self

    def retire(self, name: ClassLabel) -> Self:
        """Stop predicting a class; its nodes lose their label."""
        with self._change() as draft:
            draft.retire(name)
        return self
