"""Suggest what to label, find labels that look wrong, and describe a model and its classes."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphfcl.graph.ids import ClassLabel
from graphfcl.graph.tables.frames import table_like
from graphfcl.methods import SILENT, Progress
from graphfcl.methods.progress import progress_of
from graphfcl.production.answering import AnsweringModel
from graphfcl.runtime.html import html_table

if TYPE_CHECKING:  # predictions do not import what only advice needs
    from graphfcl.active import Strategy
    from graphfcl.production.labelling.groups import Group
    from graphfcl.production.labelling.spreading import Spread
    from graphfcl.production.labelling.suggestions import Suggestion
    from graphfcl.production.labels.class_curves import CurvePoint
    from graphfcl.production.model.card import ClassCard, ModelCard
    from graphfcl.production.model.info import ModelInfo


class AdvisingModel(AnsweringModel):
    """A model that suggests what to label and describes its classes. No method changes the model."""

    def suggest(
        self, budget: int = 20, *, strategy: "str | type[Strategy]" = "auto", seed: int = 0
    ) -> "tuple[Suggestion, ...]":
        """Suggest unlabelled nodes that are worth labelling.

        Args:
            budget: Largest number of suggestions.
            strategy: Name of a strategy (``auto``, ``typical``, ``uncertain``, ``unknown``, ``random``), or a subclass
                of :class:`Strategy`.
            seed: Seed of the random generator.

        Returns:
            Suggestions, best first, each with a reason and the likeliest classes.

        Raises:
            InputError: If an argument is unusable, or the strategy is unknown.

        Examples:
            >>> from graphfcl import GraphClassifier, load_dataset
            >>> graph, _ = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=30")
            >>> model = GraphClassifier("sgc-ridge").fit(graph, hide_classes=["class-05"])
            >>> [each.reason for each in model.suggest(2)]
            ['cluster', 'cluster']
        """
        from graphfcl.production.labelling.suggestions import suggest_for_model

        return suggest_for_model(self._current(), budget, strategy, seed)

    def groups(self, count: int = 5, *, seed: int = 0) -> "tuple[Group, ...]":
        """Find groups of similar nodes that look like none of the known classes.

        :meth:`name_group` teaches a group as a class.

        Args:
            count: Largest number of groups.
            seed: Seed of the random generator.

        Returns:
            Groups, the tightest first; none if too few nodes look unknown.

        Raises:
            InputError: If an argument is unusable.

        Examples:
            >>> from graphfcl import GraphClassifier, load_dataset
            >>> graph, _ = load_dataset("synthetic:nodes=400,edges=2000,classes=6,features=30,signal=1.0")
            >>> model = GraphClassifier("sgc-ridge").fit(graph, hide_classes=["class-01"])
            >>> [group.number for group in model.groups(2)]
            [1, 2]
        """
        from graphfcl.production.labelling.groups import find_groups

        return find_groups(self._current(), count, seed)

    def spread(self, nodes: Any) -> "Spread":
        """Measure how diverse some nodes are.

        Args:
            nodes: As in :meth:`predict`.

        Returns:
            The diversity, and whether the nodes are too similar to teach a class well.

        Raises:
            InputError: If no node is given, or a node does not exist.
        """
        from graphfcl.production.labelling.spreading import spread_of

        return spread_of(self._current(), self._ids(nodes))

    def label_issues(
        self,
        nodes: Any = None,
        *,
        count: int | None = None,
        threshold: float = 0.9,
        folds: int = 3,
        seed: int = 0,
        progress: bool | Progress = SILENT,
    ) -> Any:
        """List labels that are probably wrong.

        ``confidence`` is 1 − p, where p is the probability of the label under a model that was trained without
        it. Cross-fitting trains ``folds`` such models, each of which judges one part of the labels.
        That takes about as long as ``folds`` fits without their calibration run. The model itself does not change. The
        only label of a class cannot be judged and is not listed; neither are labels that were reviewed.

        Args:
            nodes: Judge only the labels of these nodes, reviewed ones included. None: all labels.
            count: Largest number of labels to list; None: no limit.
            threshold: Lowest confidence to list; 0 lists every label that was judged.
            folds: Number of folds, at least 2.
            seed: Seed of the split into folds.
            progress: True prints the progress; a :class:`Progress` receives it.

        Returns:
            Table, highest confidence first. ``node``; ``given``, ``given_by``, ``given_when``: its label, who gave it
            and when; ``confidence``; ``guess``, ``probability``: the likeliest other class. A DataFrame of the library
            that ``nodes`` comes from, in pandas with the index of the nodes; otherwise a PyArrow table.

        Raises:
            InputError: If an argument is out of range, or a node does not exist.
        """
        from graphfcl.production.labelling.label_issues import find_label_issues

        with progress_of(progress) as watching:
            columns, rows = find_label_issues(
                self._current(),
                self.configuration,
                self._ids(nodes),
                count=count,
                threshold=threshold,
                folds=folds,
                seed=seed,
                device=self.device,
                progress=watching,
            )
        return table_like(nodes, columns, rows)

    # Description

    def info(self, *, full: bool = False) -> "ModelInfo":
        """Count classes, nodes and labels, and check whether a refit is due.

        Reads almost nothing from a folder.

        Args:
            full: Compute the share of nodes called unknown again from the scores of all nodes, which may take a forward
                pass, instead of reading it from the history.

        Returns:
            Counts, sizes on disk, and signs that the model has aged.
        """
        from graphfcl.production.model.info import info_of

        folder = None if self._versions is None else self._versions.path
        return info_of(self._current(), self.configuration, folder, full=full)

    def class_history(self, name: ClassLabel) -> "list[CurvePoint]":
        """Return the learning curve of a class.

        Args:
            name: The class.

        Returns:
            Number of labels and recall after each change of its labels, oldest first, and the recall measured last.

        Raises:
            InputError: If the class does not exist.
        """
        from graphfcl.production.labels.class_curves import class_curves
        from graphfcl.production.labels.history import written_by_graphfcl

        state = self._current()
        stored_name = state.catalogue().resolve(name)
        with written_by_graphfcl():
            return class_curves(state.history.entries()).get(stored_name, [])

    def class_table(self) -> "tuple[ClassCard, ...]":
        """Return a row for each class: labels, recall, and the expected gain of recall from more labels."""
        from graphfcl.production.model.card import class_table

        return class_table(self._current())

    def card(self) -> "ModelCard":
        """Return a model card: classes with their labels, accuracy, data, settings, hash and version; computes no
        scores.
        """
        from graphfcl.production.model.card import card_of

        return card_of(self._current(), self.configuration, self.info())

    def _repr_html_(self) -> str:
        """Show parameters and counts as a table in a notebook."""
        rows = [(name, value) for name, value in self.configuration.parameters().items()]
        if self._state is not None:
            nodes, edges = self._state.counts()
            measured = (self._state.history.last_accuracy() or {}).get("validation")
            rows += [("classes", len(self.classes_)), ("nodes", f"{nodes:,}"), ("edges", f"{edges:,}")]
            rows += [("version", self.version or "not saved")]
            rows += [] if measured is None else [("balanced accuracy, validation", f"{100 * measured:.1f} %")]
        return html_table(repr(self), rows)

    def plot(self, path: str | Path | None = None) -> Any:
        """Plot the accuracy after each change and the recall of each class.

        Args:
            path: Also write the figure to this PNG file.

        Returns:
            A figure of matplotlib.

        Raises:
            InputError: If matplotlib is not installed, or no accuracy has been measured yet.
        """
        from graphfcl.production.model.figure import model_figure

        return model_figure(self._current(), path)
