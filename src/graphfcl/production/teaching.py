"""Changes of labels and classes: learn, accept, review, unlearn, rename, merge, retire."""

import datetime
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from graphfcl.graph.ids import ClassLabel
from graphfcl.graph.tables.frames import is_table
from graphfcl.production.advising import AdvisingModel
from graphfcl.production.labels.statements import REVIEWED, Statement, Support

if TYPE_CHECKING:  # predictions do not import what only a change needs
    from graphfcl.production.changes.guards import NewClasses
    from graphfcl.production.labelling.groups import Group


class TeachableModel(AdvisingModel):
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
        """Learn classes from labelled nodes (supports); a known class gets more of them.

        Args:
            supports: Node ids by class, ``{"class name": [ids]}``. Or a DataFrame or the Path of a table, with the
                columns ``node`` and ``class`` or the columns of the tables of the fit. Its columns ``by`` and ``when``,
                and columns that the fit did not have, are stored with the labels.
            by: Who gave the labels.
            when: When the labels were given, as a date or a text.
            on_conflict: What to do if a node has another label; see :meth:`learn_listed`.
            new_classes: Which classes may be new; see :meth:`learn_listed`.

        Returns:
            The model.

        Raises:
            InputError: If a support cannot be used; nothing is learned then.
            AccuracyLossError: Inside :meth:`guarded`, if the change costs too much accuracy.

        Examples:
            >>> from graphfcl import GraphClassifier, load_dataset
            >>> graph, _ = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=30")
            >>> model = GraphClassifier("sgc-ridge").fit(graph, hide_classes=["class-05"])
            >>> supports = graph.node_ids[graph.labels == 5][:5].tolist()
            >>> model.learn({"class-05": supports}, by="ann").history[-1]["new"]
            ['class-05']
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

        Args:
            supports: The supports.
            on_conflict: What to do if a node has another label: ``refuse`` all supports, ``keep`` the label it has, or
                ``replace`` it. If another person repeats a label, it is stored once, with both names.
            new_classes: Which classes may be new. True: any class whose name differs from all known names by more than
                case, white space and accents. A list: the classes in it, however similar their names are, and no
                others. False: none.

        Returns:
            The model.

        Raises:
            InputError: If a support cannot be used; nothing is learned then.
            AccuracyLossError: Inside :meth:`guarded`, if the change costs too much accuracy.
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
        """Learn a group of :meth:`groups` as a class.

        The labels store that their nodes were members of a group.

        Args:
            group: A group.
            name: Name of the class.
            nodes: Ids of the members to learn, all of them. None: ``shot`` typical members of different parts of the
                group.
            by: Who named the group.
            when: When the group was named, as a date or a text.
            new_classes: Which classes may be new; see :meth:`learn_listed`.

        Returns:
            The model.

        Raises:
            InputError: If a node is not a member, or every member has a label or is gone; nothing is learned then.
            AccuracyLossError: Inside :meth:`guarded`, if the change costs too much accuracy.
        """
        from graphfcl.production.changes.label_batch import supports_of
        from graphfcl.production.labelling.groups import supports_of_group

        state = self._current()
        ids = supports_of_group(state, group, self.shot, nodes)
        statement = Statement.of(by, when, {"reason": group.reason}, "the group")
        return self.learn_listed(supports_of({name: ids}, statement, state.parts.label_store), new_classes=new_classes)

    def accept(self, nodes: Sequence[Any], *, by: str = "", when: str | datetime.date = "", reason: str = "") -> Self:
        """Store the predicted classes of unlabelled nodes as accepted labels.

        No prediction changes: the model neither learns from accepted labels nor uses them for calibration or accuracy.
        :meth:`unlearn` removes them, and :meth:`learn` with the same class turns them into labels that the model
        learns.

        Args:
            nodes: Ids of the nodes, or a DataFrame with the column ``node``.
            by: Who accepted the classes.
            when: When they were accepted, as a date or a text.
            reason: Why they were accepted.

        Returns:
            The model.

        Raises:
            InputError: If a node has a label already or does not exist; nothing is accepted then.
        """
        statement = Statement.of(by, when, {"reason": reason}, "the accepted labels")
        nodes = self._ids(nodes)
        with self._change() as draft:
            draft.accept(nodes, statement)
        return self

    def review(self, nodes: Sequence[Any], *, by: str = "", when: str | datetime.date = "") -> Self:
        """Mark labels as reviewed, so that :meth:`label_issues` does not list them again.

        The mark is stored with the label until the label is replaced or removed.

        Args:
            nodes: Ids of labelled nodes, or a DataFrame with the column ``node``.
            by: Who reviewed the labels.
            when: When they were reviewed, as a date or a text.

        Returns:
            The model.

        Raises:
            InputError: If a node has no label; nothing is changed then.
        """
        statement = Statement.of(by, when, {REVIEWED: "kept"}, "the review")
        nodes = self._ids(nodes)
        with self._change() as draft:
            draft.review(nodes, statement)
        return self

    def unlearn(self, nodes: Sequence[Any]) -> Self:
        """Remove labels; a class that loses its last label is retired.

        Args:
            nodes: Ids of labelled nodes, or a DataFrame with the column ``node``.

        Returns:
            The model.

        Raises:
            InputError: If a node has no label; nothing is changed then.
            AccuracyLossError: Inside :meth:`guarded`, if the change costs too much accuracy.
        """
        nodes = self._ids(nodes)
        with self._change() as draft:
            draft.unlearn(nodes)
        return self

    def rename(self, old: ClassLabel, new: ClassLabel) -> Self:
        """Rename a class; nothing else changes.

        Args:
            old: Current name.
            new: New name.

        Returns:
            The model.

        Raises:
            InputError: If there is no class ``old``, or a class ``new`` exists.
        """
        with self._change() as draft:
            draft.rename(old, new)
        return self

    def merge(self, source: ClassLabel, into: ClassLabel) -> Self:
        """Merge one class into another.

        Args:
            source: Class whose nodes move.
            into: Class that gets them.

        Returns:
            The model.

        Raises:
            InputError: If one of the classes does not exist.
            AccuracyLossError: Inside :meth:`guarded`, if the change costs too much accuracy.
        """
        with self._change() as draft:
            draft.merge(source, into)
        return self

    def retire(self, name: ClassLabel) -> Self:
        """Stop predicting a class; its nodes lose their label.

        Args:
            name: The class.

        Returns:
            The model.

        Raises:
            InputError: If the class does not exist, or is the last one.
            AccuracyLossError: Inside :meth:`guarded`, if the change costs too much accuracy.
        """
        with self._change() as draft:
            draft.retire(name)
        return self
