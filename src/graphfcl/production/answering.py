"""Queries of a model: classes, probabilities, prediction sets, labels, explanations, what to label next."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphfcl.errors import InputError, shown
from graphfcl.graph.ids import ClassLabel
from graphfcl.graph.tables.frames import is_frame, table_like
from graphfcl.methods import SILENT, Progress
from graphfcl.methods.progress import progress_of
from graphfcl.production.answers.answers import Predictions, class_probabilities, class_sets, predictions
from graphfcl.production.changes.live_model import LiveModel
from graphfcl.production.model.explaining import explain_node
from graphfcl.production.model.label_table import Columns, label_table
from graphfcl.production.model.parts import whole_number
from graphfcl.production.model.state import RowAnswers
from graphfcl.runtime.html import html_table

if TYPE_CHECKING:
    from graphfcl.active import Strategy
    from graphfcl.production.labelling.groups import Group
    from graphfcl.production.labelling.node_vectors import Vectors
    from graphfcl.production.labelling.spreading import Spread
    from graphfcl.production.labelling.suggestions import Suggestion
    from graphfcl.production.labels.class_curves import CurvePoint
    from graphfcl.production.model.card import ClassCard, ModelCard
    from graphfcl.production.model.info import ModelInfo


@dataclass(frozen=True)
class Measured:
    """What a pass over a graph folder measured. accuracy: as in the history. warning: empty if there is none."""

    accuracy: dict[str, Any]
    warning: str


class AnsweringModel(LiveModel):
    """A model that answers queries. Each call takes the current state and works on it."""

    def _repr_html_(self) -> str:
        """Parameters, and what it holds, for a notebook."""
        rows = [(name, value) for name, value in self.configuration.parameters().items()]
        if self._state is not None:
            nodes, edges = self._state.counts()
            measured = (self._state.history.last_accuracy() or {}).get("validation")
            rows += [("classes", len(self.classes_)), ("nodes", f"{nodes:,}"), ("edges", f"{edges:,}")]
            rows += [("version", self.version or "not saved")]
            rows += [] if measured is None else [("balanced accuracy, validation", f"{100 * measured:.1f} %")]
        return html_table(repr(self), rows)

    def plot(self, path: str | Path | None = None) -> Any:
        """A figure of matplotlib: accuracy after each change, and recall by class. path: also write it there as PNG."""
        from graphfcl.production.model.figure import model_figure

        return model_figure(self._current(), path)

    @property
    def classes_(self) -> tuple[ClassLabel, ...]:
        """All classes it can predict, in the order in which they were learned; integers if those of the fit were."""
        return self._current().catalogue().labels

    @property
    def node_ids_(self) -> np.ndarray:
        """The user's ids of all nodes."""
        return self._current().names().ids

    @property
    def has_answers(self) -> bool:
        """Whether it answers without a pass over its graph folder; a model in memory always does."""
        state = self._current()
        return not state.passes or state.answering.has_answers()

    def calibrate(self, *, progress: bool | Progress = SILENT) -> Measured | None:
        """Compute scores of all nodes and calibrate them, unless that was done before.

        A change of a model on a graph folder returns before that; otherwise the next query would compute them. Returns
        None if nothing was left to compute; otherwise the accuracy, and a warning if older classes lost more than
        ``max_loss``.
        """
        state = self._current()
        if self.has_answers:
            state.answering.answers()
            return None
        from graphfcl.production.model.calibrating import regression_warning

        with progress_of(progress) as watching:
            accuracy = state.accuracy(watching)
        return Measured(accuracy, regression_warning(state.history, accuracy, self.max_loss) or "")

    def accuracy(self) -> dict[str, Any]:
        """The accuracy of this state as the history keeps it; on a graph folder it may take a pass to measure it."""
        return self._current().accuracy()

    @property
    def by_row(self) -> RowAnswers:
        """Probabilities and unknown scores by rows of ``graph_``."""
        return RowAnswers(self._current())

    @property
    def vectors_by_row(self) -> "Vectors":
        """A function from (r,) rows of ``graph_`` to the (r, d) vectors that nodes are compared by."""
        from graphfcl.production.labelling.node_vectors import vectors_of

        return vectors_of(self._current())

    # Nodes are a list or an array of ids, or a DataFrame with a column ``node`` or the id column of the fit.

    def predict(self, nodes: Any = None) -> np.ndarray:
        """(n,) the likeliest class of each node, or of all nodes in the order of ``node_ids_``.

        Of the type that ``fit`` received: texts, or integers as int64. A text that was learned later beside integers
        stays a text; the array then holds Python objects.
        """
        labels = self._current().catalogue().label_array()
        return labels[np.concatenate([each.argmax(axis=1) for each in self._probabilities(nodes)])]

    def predict_proba(self, nodes: Any = None) -> np.ndarray:
        """(n, classes) probabilities in the order of ``classes_``; each row sums to 1."""
        return np.concatenate(list(self._probabilities(nodes)))

    def _probabilities(self, nodes: Any) -> Iterator[np.ndarray]:
        state, nodes = self._current(), self._ids(nodes)
        labels = state.catalogue()
        return (class_probabilities(labels, answers) for _, answers in state.in_blocks(nodes))

    def score(self, nodes: Any, classes: Any = None, *, metric: str = "accuracy") -> float:
        """A metric of ``predict``, by default the share of nodes whose likeliest class is the true one.

        Nodes of unknown class do not count. Fits, calibration and choices optimise balanced accuracy, the mean recall
        over classes: plain accuracy may be lower for it.

        classes: a list of the true class of each node; None for a DataFrame that has them in its column ``class`` or
        the label column of the fit. A class that the model does not have is never right; a warning if none is the
        model's. metric: ``accuracy``, ``balanced_accuracy``, ``macro_f1``, or any other metric of a session
        (:mod:`graphfcl.metrics`), of which ``base`` and ``novel`` are about classes of the fit and later ones.
        """
        from graphfcl.production.answers.scoring import named_metric, score_of
        from graphfcl.production.changes.user_tables import true_classes

        chosen, labels = named_metric(metric), self._current().catalogue()
        nodes, true = true_classes(nodes, classes, self._columns(), labels)
        return score_of(chosen, true, self.predict(nodes), labels)

    def prediction_sets(self, nodes: Any = None, *, coverage: float = 0.9) -> list[tuple[ClassLabel, ...]]:
        """For each node a set of classes that contains the true one with this probability, likeliest first.

        It holds for nodes of known classes (split conformal prediction on validation nodes); for classes that were
        learned after the fit it is an estimate from the held-out run.
        """
        state, nodes = self._current(), self._ids(nodes)
        labels, calibration = state.catalogue(), state.calibration()
        blocks = (class_probabilities(labels, answers) for _, answers in state.in_blocks(nodes))
        return [each for block in blocks for each in class_sets(calibration, labels, block, coverage)]

    def unknown_scores(self, nodes: Any = None) -> np.ndarray:
        """(n,) the share of known nodes with a lower OOD score; above ``calibration_.threshold`` a node is unknown."""
        state, nodes = self._current(), self._ids(nodes)
        calibration = state.calibration()
        return np.concatenate([calibration.unknown_scores(part.ood_score) for _, part in state.in_blocks(nodes)])

    def predictions(self, nodes: Any = None, *, coverage: float | None = None, top: int = 1) -> Any:
        """A table with the columns ``node, class, probability, unknown_score, unknown`` of some nodes, or of all.

        coverage: also ``set``, that of :meth:`prediction_sets`. top: so many of the likeliest classes, in columns
        ``class_2, probability_2``, and so on. The table is a DataFrame of the library that ``nodes`` comes from, with
        the same index in pandas, and otherwise a table of pyarrow.
        """
        return table_like(nodes, self.prediction_columns(nodes, coverage=coverage, top=top))

    def prediction_columns(self, nodes: Any = None, *, coverage: float | None = None, top: int = 1) -> Predictions:
        """The same as an array for each column."""
        parts = list(self.predictions_in_blocks(nodes, coverage=coverage, top=top))
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def predictions_in_blocks(
        self, nodes: Any = None, *, coverage: float | None = None, top: int = 1
    ) -> Iterator[Predictions]:
        """The same, one block of nodes after the other: those of a graph folder need not fit into memory."""
        if whole_number(top, "top", 3) < 1:
            raise InputError(f"top is {top}: ask for at least 1 class.")
        state, nodes = self._current(), self._ids(nodes)
        labels, calibration = state.catalogue(), state.calibration()
        return (predictions(calibration, labels, *block, coverage, top) for block in state.in_blocks(nodes))

    def labels(self, nodes: Any = None) -> Any:
        """A table with the columns ``node, class, part, by, when`` and those kept with labels.

        Of some nodes in their order, or of all with a label; a row for each statement. The table is of the library that
        ``nodes`` comes from, in pandas with the index of the nodes, or of pyarrow.
        """
        return table_like(nodes, *self._labels(nodes))

    def label_columns(self, nodes: Any = None) -> Columns:
        """The same as an array for each column."""
        return self._labels(nodes)[0]

    def _labels(self, nodes: Any) -> tuple[Columns, np.ndarray | None]:
        """The columns, and which of the nodes each row is about."""
        state = self._current()
        return label_table(state.parts.label_store, state.names(), self._ids(nodes))

    def explain(self, node: Any, *, top: int = 5) -> dict[str, Any]:
        """Why a node got its class: competing classes, blocks, features and neighbours that decided.

        Only some methods support it. Values are parts of the difference between the scores of the first and the second
        class.
        """
        if is_frame(node) or isinstance(node, list | tuple | set | np.ndarray):
            example = shown(next(iter(node))) if isinstance(node, list | tuple | set) and node else "the first"
            raise InputError(f"explain takes one node, and got {shown(node)}: give its id, such as {example}.")
        return explain_node(self._current(), node, top)

    # What to label next

    def suggest(
        self, budget: int = 20, *, strategy: "str | type[Strategy]" = "auto", seed: int = 0
    ) -> "tuple[Suggestion, ...]":
        """Nodes worth labelling, best first, each with a reason and the model's likeliest classes; at most ``budget``.

        strategy: a name (``auto``, ``typical``, ``uncertain``, ``unknown``, ``random``) or a class of your own.
        """
        from graphfcl.production.labelling.suggestions import suggest_for_model

        return suggest_for_model(self._current(), budget, strategy, seed)

    def groups(self, count: int = 5, *, seed: int = 0) -> "tuple[Group, ...]":
        """A few tight groups among nodes that look like none of the classes, the tightest first; perhaps none.

        :meth:`GraphClassifier.name_group` teaches one.
        """
        from graphfcl.production.labelling.groups import find_groups

        return find_groups(self._current(), count, seed)

    def spread(self, nodes: Any) -> "Spread":
        """How diverse some nodes are, and whether they are too alike to teach a class well."""
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
        """A table of the labels that the model disputes, by its confidence that a label is wrong, the highest first.

        The columns are ``node``; ``given``, ``given_by``, ``given_when``: its label, who gave it and when;
        ``confidence``: 1 − p of the label; ``guess``, ``probability``: the likeliest of the other classes. p is of a
        model that was trained without the label. So it trains ``folds`` models, of which each judges a part of the
        labels; that takes as long as so many fits without their calibration run. The model itself stays as it is. The
        only label of a class cannot be judged and is not listed, nor is a label that was reviewed.

        nodes: look at the labels of these only. The table is of the library that ``nodes`` comes from, in pandas with
        the index of the nodes, or of pyarrow. count: list at most so many. threshold: the lowest confidence listed; 0
        lists every label. seed: of the split into folds. progress: True prints it.
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

    def info(self, *, full: bool = False) -> "ModelInfo":
        """Counts, sizes, and whether a refit is due; next to nothing of a folder is read for it.

        full: count the nodes called unknown even if that takes a forward pass; it is only needed for a version of which
        neither history nor cache has their share.
        """
        from graphfcl.production.model.info import info_of

        folder = None if self._versions is None else self._versions.path
        return info_of(self._current(), self.configuration, folder, full=full)

    def class_history(self, name: ClassLabel) -> "list[CurvePoint]":
        """Labels and recall of a class after each change of its labels, oldest first, and as measured last."""
        from graphfcl.production.labels.class_curves import class_curves
        from graphfcl.production.labels.history import written_by_graphfcl

        state = self._current()
        stored_name = state.catalogue().resolve(name)
        with written_by_graphfcl():
            return class_curves(state.history.entries()).get(stored_name, [])

    def class_table(self) -> "tuple[ClassCard, ...]":
        """Every class with its labels, recall, and what its recall would gain from more labels."""
        from graphfcl.production.model.card import class_table

        return class_table(self._current())

    def card(self) -> "ModelCard":
        """A model card: classes with their labels, accuracy, data, settings, hash and version; computes no scores."""
        from graphfcl.production.model.card import card_of

        return card_of(self._current(), self.configuration, self.info())
