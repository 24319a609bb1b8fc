"""Queries of a model: classes, probabilities, prediction sets, labels and explanations."""

from collections.abc import Iterator
from dataclasses import dataclass
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
from graphfcl.production.model.state import ModelState, RowAnswers

if TYPE_CHECKING:
    from graphfcl.production.labelling.node_vectors import Vectors


@dataclass(frozen=True)
class Measured:
    """Accuracy that a pass over a graph folder measured.

    Attributes:
        accuracy: Accuracy, with the same keys as in an entry of the history.
        warning: Warning that older classes lost more than ``max_loss``; empty if they did not.
    """

    accuracy: dict[str, Any]
    warning: str


class AnsweringModel(LiveModel):
    """A model that answers queries. Each call takes the current state once and works on it."""

    @property
    def classes_(self) -> tuple[ClassLabel, ...]:
        """All classes that the model can predict, in the order in which they were learned; integers if the fit had
        integers.
        """
        return self._current().catalogue().labels

    @property
    def node_ids_(self) -> np.ndarray:
        """(n,) the user's ids of all nodes."""
        return self._current().names().ids

    @property
    def has_answers(self) -> bool:
        """Whether queries need no pass over the graph folder; always true for a model in memory."""
        state = self._current()
        return not state.passes or state.answering.has_answers()

    def calibrate(self, *, progress: bool | Progress = SILENT) -> Measured | None:
        """Compute the scores of all nodes and calibrate them, unless that was done before.

        A change of a model on a graph folder returns before its scores are computed. Without this call, the next query
        computes them.

        Args:
            progress: True prints the progress; a :class:`Progress` receives it.

        Returns:
            The accuracy, and a warning if older classes lost more than ``max_loss``. None if nothing was left to
            compute.
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
        """Return the accuracy of the current state, as the history stores it.

        For a model on a graph folder this may take a pass over the folder.
        """
        return self._current().accuracy()

    @property
    def by_row(self) -> RowAnswers:
        """Probabilities and unknown scores by rows of ``graph_``."""
        return RowAnswers(self._current())

    @property
    def vectors_by_row(self) -> "Vectors":
        """Function from (r,) rows of ``graph_`` to (r, d) vectors by which nodes are compared."""
        from graphfcl.production.labelling.node_vectors import vectors_of

        return vectors_of(self._current())

    def predict(self, nodes: Any = None) -> np.ndarray:
        """Predict the class of each node.

        Args:
            nodes: Ids in a list or an array, or a DataFrame with the column ``node`` or the id column of the fit. None:
                all nodes, in the order of ``node_ids_``.

        Returns:
            (n,) the likeliest class of each node, as texts or int64 like the classes of the fit. If a text was learned
            later beside integers, an array of Python objects.

        Raises:
            InputError: If a node does not exist, or the model is not fitted.

        Examples:
            >>> from graphfcl import GraphClassifier, load_dataset
            >>> graph, _ = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=30")
            >>> model = GraphClassifier("sgc-ridge").fit(graph)
            >>> model.predict([0, 1, 2]).tolist()
            ['class-01', 'class-00', 'class-03']
        """
        return self._predicted(self._current(), nodes)

    def predict_proba(self, nodes: Any = None) -> np.ndarray:
        """Predict the probability of each class.

        Args:
            nodes: As in :meth:`predict`.

        Returns:
            (n, classes) probabilities in the order of ``classes_``. Each row sums to 1.

        Raises:
            InputError: If a node does not exist, or the model is not fitted.
        """
        return np.concatenate(list(self._probabilities(self._current(), nodes)))

    def _predicted(self, state: ModelState, nodes: Any) -> np.ndarray:
        classes = np.concatenate([each.argmax(axis=1) for each in self._probabilities(state, nodes)])
        return state.catalogue().label_array()[classes]

    def _probabilities(self, state: ModelState, nodes: Any) -> Iterator[np.ndarray]:
        labels = state.catalogue()
        return (class_probabilities(labels, answers) for _, answers in state.in_blocks(self._ids(nodes)))

    def score(self, nodes: Any, classes: Any = None, *, metric: str = "accuracy") -> float:
        """Compare predicted classes with the true ones.

        The default metric is plain accuracy. Fits, calibration and choices of settings optimise balanced accuracy, the
        mean recall over classes, so plain accuracy may be lower.

        Args:
            nodes: Ids of the nodes, or a DataFrame.
            classes: True class of each node. None: the column ``class``, or the label column of the fit, of the
                DataFrame ``nodes``. Nodes whose class is missing do not count. A class that the model does not have is
                never right.
            metric: ``accuracy``, ``balanced_accuracy``, ``macro_f1``, or another metric of a session
                (:mod:`graphfcl.metrics`). In those, ``base`` classes are the classes of the fit and ``novel`` classes
                were learned later.

        Returns:
            The metric; NaN if it has no value.

        Raises:
            InputError: If a node does not exist, no node has a class, or the metric is unknown.
        """
        from graphfcl.production.answers.scoring import named_metric, score_of
        from graphfcl.production.changes.user_tables import true_classes

        state = self._current()
        chosen, labels = named_metric(metric), state.catalogue()
        nodes, true = true_classes(nodes, classes, self._columns(), labels)
        return score_of(chosen, true, self._predicted(state, nodes), labels)

    def prediction_sets(self, nodes: Any = None, *, coverage: float = 0.9) -> list[tuple[ClassLabel, ...]]:
        """Predict a set of classes for each node that contains the true one with a given probability.

        For nodes of session-0 classes this is split conformal prediction on validation nodes. For classes learned after
        the fit the probability is only approximate: it is an estimate from the held-out run.

        Args:
            nodes: As in :meth:`predict`.
            coverage: Probability that a set contains the true class.

        Returns:
            The classes in the set of each node, likeliest first.

        Raises:
            InputError: If a node does not exist, or the coverage is not between 0 and 1.
        """
        state, nodes = self._current(), self._ids(nodes)
        labels, calibration = state.catalogue(), state.calibration()
        blocks = (class_probabilities(labels, answers) for _, answers in state.in_blocks(nodes))
        return [each for block in blocks for each in class_sets(calibration, labels, block, coverage)]

    def unknown_scores(self, nodes: Any = None) -> np.ndarray:
        """Score how likely each node belongs to no known class.

        Args:
            nodes: As in :meth:`predict`.

        Returns:
            (n,) the share of nodes of known classes with a lower out-of-distribution (OOD) score. A node whose share
            exceeds ``calibration_.threshold`` is called unknown.

        Raises:
            InputError: If a node does not exist, or the model is not fitted.
        """
        state, nodes = self._current(), self._ids(nodes)
        calibration = state.calibration()
        return np.concatenate([calibration.unknown_scores(part.ood_score) for _, part in state.in_blocks(nodes)])

    def predictions(self, nodes: Any = None, *, coverage: float | None = None, top: int = 1) -> Any:
        """Predict classes, probabilities and unknown scores as a table.

        Args:
            nodes: As in :meth:`predict`.
            coverage: Add the column ``set``, the classes of :meth:`prediction_sets` with this coverage.
            top: Number of likeliest classes. More than 1 adds the columns ``class_2``, ``probability_2`` and so on.

        Returns:
            Table with the columns ``node``, ``class``, ``probability``, ``unknown_score`` and ``unknown``. A DataFrame
            of the library that ``nodes`` comes from, with the same index in pandas; otherwise a PyArrow table.

        Raises:
            InputError: If a node does not exist, or an argument is out of range.

        Examples:
            >>> from graphfcl import GraphClassifier, load_dataset
            >>> graph, _ = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=30")
            >>> model = GraphClassifier("sgc-ridge").fit(graph)
            >>> table = model.predictions([0, 1], top=2)
            >>> table.column_names
            ['node', 'class', 'probability', 'unknown_score', 'unknown', 'class_2', 'probability_2']
        """
        return table_like(nodes, self.prediction_columns(nodes, coverage=coverage, top=top))

    def prediction_columns(self, nodes: Any = None, *, coverage: float | None = None, top: int = 1) -> Predictions:
        """Predict like :meth:`predictions`, with a NumPy array for each column.

        Args:
            nodes: As in :meth:`predict`.
            coverage: As in :meth:`predictions`.
            top: As in :meth:`predictions`.

        Returns:
            Arrays by column name.
        """
        parts = list(self.predictions_in_blocks(nodes, coverage=coverage, top=top))
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def predictions_in_blocks(
        self, nodes: Any = None, *, coverage: float | None = None, top: int = 1
    ) -> Iterator[Predictions]:
        """Predict like :meth:`prediction_columns`, one block of nodes after the other.

        Predictions for a graph folder need not fit into memory.

        Args:
            nodes: As in :meth:`predict`.
            coverage: As in :meth:`predictions`.
            top: As in :meth:`predictions`.

        Returns:
            Iterator over blocks, each with arrays by column name.

        Raises:
            InputError: If a node does not exist, or an argument is out of range.
        """
        if whole_number(top, "top", 3) < 1:
            raise InputError(f"top is {top}: ask for at least 1 class.")
        state, nodes = self._current(), self._ids(nodes)
        labels, calibration = state.catalogue(), state.calibration()
        return (predictions(calibration, labels, *block, coverage, top) for block in state.in_blocks(nodes))

    def labels(self, nodes: Any = None) -> Any:
        """Return the labels as a table, with who gave them.

        Args:
            nodes: As in :meth:`predict`. None: all labelled nodes. Nodes without a label have no row.

        Returns:
            Table with the columns ``node``, ``class``, ``part``, ``by`` and ``when``, and a column for each further
            value that is stored with labels. A node has a row for each person who gave its label. A DataFrame of the
            library that ``nodes`` comes from, in pandas with the index of the nodes; otherwise a PyArrow table.

        Raises:
            InputError: If a node does not exist.
        """
        return table_like(nodes, *self._labels(nodes))

    def label_columns(self, nodes: Any = None) -> Columns:
        """Return the table of :meth:`labels`, with a NumPy array for each column.

        Args:
            nodes: As in :meth:`labels`.

        Returns:
            Arrays by column name.
        """
        return self._labels(nodes)[0]

    def _labels(self, nodes: Any) -> tuple[Columns, np.ndarray | None]:
        """Return the columns, and for each row which of ``nodes`` it is about."""
        state = self._current()
        return label_table(state.parts.label_store, state.names(), self._ids(nodes))

    def explain(self, node: Any, *, top: int = 5) -> dict[str, Any]:
        """Explain the predicted class of a node.

        Values are contributions to the difference between the scores of the first and the second class.

        Args:
            node: Id of one node.
            top: Number of features and of neighbours to list.

        Returns:
            JSON values: competing classes, and the feature blocks, features and neighbours that decided.

        Raises:
            InputError: If the method cannot explain predictions, or the node does not exist.
        """
        if is_frame(node) or isinstance(node, list | tuple | set | np.ndarray):
            example = shown(next(iter(node))) if isinstance(node, list | tuple | set) and node else "the first"
            raise InputError(f"explain takes one node, and got {shown(node)}: give its id, such as {example}.")
        return explain_node(self._current(), node, top)
