"""Evaluate a learner and a strategy on a stream of the track ``active``.

In each session the strategy chooses candidates within a budget. Their labels are revealed, whichever class they have,
and passed to the learner as a session. Before that, only this module knows the labels of candidates. The learner gets a
new column for a class when its first node is labelled. Metrics count all classes of the stream.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from graphfcl.active import OF_EACH_CLASS, ActiveLearningState, Strategy, checked, find_strategy
from graphfcl.active.untrained import untrained_vectors
from graphfcl.evaluation.evaluate import Evaluation, fit_base, learner_for, report_session, scores_in_blocks
from graphfcl.graph import VisibleNodes
from graphfcl.methods.blocks.work_folder import alone_on
from graphfcl.methods.learner import SILENT, Learner, Progress
from graphfcl.methods.progress import progress_of
from graphfcl.methods.state import NO_STORE, EncoderStore
from graphfcl.metrics import ActiveRecord, balanced_accuracy, confusion_matrix
from graphfcl.stream import Session, Stream
from graphfcl.stream.split import strategy_generator


class OfEachClass:
    """Reference that chooses K random candidates of each class of the session.

    It needs an oracle, because it uses the classes of unlabelled nodes. It is therefore not a :class:`Strategy`.
    """

    name = OF_EACH_CLASS
    title = "K random nodes of each new class: needs an oracle"

    def nodes(self, stream: Stream, session: int, free: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Choose among ``free``, the numbers of the candidates without a label."""
        columns = stream.columns_of(free)
        arriving = np.flatnonzero(stream.session_of_class == session)
        drawn = [random.permutation(free[columns == column])[: stream.protocol.shot] for column in arriving]
        return np.concatenate(drawn)


Chooser = Strategy | OfEachClass


def find_chooser(name: str, source: str = "") -> Chooser:
    """Make the strategy with a name, or the reference ``of-each-class``."""
    return OfEachClass() if name == OF_EACH_CLASS else find_strategy(name, source).make()


def needs_oracle(name: str) -> bool:
    """Whether a strategy name is that of the reference, which uses labels that no user has."""
    return name == OF_EACH_CLASS


@dataclass(frozen=True, eq=False)
class RevealedLabels:
    """The labels revealed so far.

    Attributes:
        nodes: Node numbers in the order of selection, shape (m,).
        columns: Class of each of these nodes, as a column of the learner, shape (m,).
        classes: The stream's class of each column of the learner.
    """

    nodes: np.ndarray
    columns: np.ndarray
    classes: np.ndarray

    @classmethod
    def of(cls, stream: Stream, answered: Sequence[np.ndarray]) -> "RevealedLabels":
        """Collect the labels of some sessions, from the node numbers that were chosen in each."""
        base = np.flatnonzero(stream.session_of_class == 0)
        revealed = cls(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), base)
        for nodes in answered:
            revealed = revealed.plus(stream, nodes)
        return revealed

    def plus(self, stream: Stream, nodes: np.ndarray) -> "RevealedLabels":
        """Add nodes. New classes get the next columns, in the order in which their first nodes were chosen."""
        true = stream.columns_of(nodes)
        values, first = np.unique(true, return_index=True)
        new = values[np.argsort(first)]
        classes = np.concatenate([self.classes, new[~np.isin(new, self.classes)]])
        column_of = np.empty(len(stream.classes), dtype=np.int64)
        column_of[classes] = np.arange(classes.size)
        columns = np.concatenate([self.columns, column_of[true]])
        return RevealedLabels(np.concatenate([self.nodes, nodes]), columns, classes)


def evaluate_active(
    learner: Learner | str,
    stream: Stream,
    chooser: Chooser | Callable[[], Chooser],
    *,
    settings: Mapping[str, Any] | None = None,
    progress: bool | Progress = SILENT,
    done: Evaluation | None = None,
    on_session: Callable[[Evaluation], object] | None = None,
    encoders: EncoderStore = NO_STORE,
) -> Evaluation:
    """Evaluate a learner together with a strategy of active learning.

    The learner is fitted on session 0. In each later session the strategy chooses nodes, their labels are revealed, the
    learner learns them, and all visible nodes are scored. A strategy's random numbers depend only on seed and session,
    so an interrupted run continues with the same results.

    Args:
        learner: Learner object, or the name of a method. A method of that name is made with the seed of the stream.
        stream: Stream with the track ``active``.
        chooser: Strategy, or a function or class that makes one. If it is a function or class, a new strategy is made
            for each session, so that a strategy with internal state gives the same results after an interruption.
        settings: With a method's name, the settings that differ from its defaults.
        progress: True shows progress bars. A :class:`Progress` receives what the learner reports.
        done: Evaluation of an interrupted run of the same learner. The run continues with the next session.
        on_session: Function that is called after each session with the evaluation so far.
        encoders: Store from which pre-trained encoders are read and to which they are written.

    Returns:
        The evaluation. Its ``answered`` holds the nodes that were labelled in each session.

    Raises:
        InputError: If an argument cannot be used, or the strategy breaks its contract.
        DivergenceError: If training diverges, or the learner's scores are NaN.

    Examples:
        >>> from graphfcl import evaluate_active, find_strategy, load_dataset, make_stream
        >>> graph, _ = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=30")
        >>> stream = make_stream(graph, seed=0, track="active")
        >>> evaluation = evaluate_active("sgc-ridge", stream, find_strategy("uncertain").make)
        >>> [nodes.size for nodes in evaluation.answered]
        [5, 5]
    """
    learner = learner_for(learner, stream, settings)
    stream = stream.fresh()
    evaluation = done or Evaluation.start(learner, stream)
    predictions: _Predictions | None = None
    with alone_on(stream.graph), progress_of(progress) as watching:
        for number in range(len(evaluation.confusions), len(stream) + 1):
            answered, revealed = evaluation.answered, RevealedLabels.of(stream, evaluation.answered)
            if number == 0:
                seconds = _seconds(partial(fit_base, learner, stream, watching, encoders))
            else:
                if predictions is None:  # the first session of a run that continues
                    predictions = _Predictions.of(learner, stream, number - 1, revealed)
                strategy = chooser() if callable(chooser) else chooser
                nodes = _choose_nodes(strategy, learner, stream, number, revealed, predictions)
                before, revealed, answered = revealed, revealed.plus(stream, nodes), (*answered, nodes)
                session = _session(stream, number, before, revealed)
                seconds = _seconds(partial(learner.learn, session)) if nodes.size else 0.0
            predictions = _Predictions.of(learner, stream, number, revealed)
            evaluation = replace(
                evaluation,
                confusions=(*evaluation.confusions, predictions.confusion(stream, number, revealed)),
                seconds=(*evaluation.seconds, seconds),
                answered=answered,
            )
            if on_session is not None:
                on_session(evaluation)
            report_session(watching, evaluation, len(stream))
    return evaluation


def _session(stream: Stream, number: int, before: RevealedLabels, revealed: RevealedLabels) -> Session:
    """Make the session that the learner gets: the labels revealed in it, and the names of its new classes."""
    new = tuple(stream.classes[column] for column in revealed.classes[before.classes.size :])
    first = before.nodes.size
    return stream.active_session(number, new, revealed.nodes[first:].copy(), revealed.columns[first:].copy())


def _seconds(learn: Callable[[], object]) -> float:
    """Run a function and return the seconds that it took."""
    start = time.perf_counter()
    learn()
    return time.perf_counter() - start


@dataclass(frozen=True, eq=False)
class _Predictions:
    """The predictions of a learner for every visible node.

    Attributes:
        likeliest: Most likely column of the learner, shape (n,).
        scores: Probabilities, shape (n, C).
        unknown_score: Out-of-distribution score, shape (n,).
    """

    likeliest: np.ndarray
    scores: np.ndarray
    unknown_score: np.ndarray

    @classmethod
    def of(cls, learner: Learner, stream: Stream, session: int, revealed: RevealedLabels) -> "_Predictions":
        """Score all nodes: probabilities by softmax, and the standardised energy −log Σ_c exp(s_c) as unknown score."""
        numbers, classes = stream.evaluation_numbers(session), revealed.classes.size
        likeliest = np.empty(numbers.size, dtype=np.int64)
        probabilities = np.empty((numbers.size, classes), dtype=np.float32)
        energy = np.empty(numbers.size, dtype=np.float64)
        for nodes, scores in scores_in_blocks(learner, stream, session, classes):
            rows = np.searchsorted(numbers, nodes)
            likeliest[rows] = scores.argmax(axis=1)
            highest = np.nan_to_num(scores.max(axis=1, keepdims=True), neginf=0.0)
            powers = np.exp(scores.astype(np.float64) - highest)
            total = powers.sum(axis=1, keepdims=True)
            probabilities[rows] = powers / total
            energy[rows] = -(np.log(total) + highest)[:, 0]
        deviation = energy.std()
        unknown_score = (energy - energy.mean()) / (deviation if deviation > 0 else 1.0)
        return cls(likeliest, probabilities, unknown_score.astype(np.float32))

    def confusion(self, stream: Stream, session: int, revealed: RevealedLabels) -> np.ndarray:
        """Confusion matrix over all classes of the stream. A class without a labelled node is never predicted."""
        queries, numbers = stream.queries(session), stream.evaluation_numbers(session)
        predicted = revealed.classes[self.likeliest[np.searchsorted(numbers, queries.nodes)]]
        return confusion_matrix(queries.labels, predicted, len(stream.classes))


def active_record(evaluation: Evaluation, stream: Stream) -> ActiveRecord:
    """Collect the data from which the metrics of the track are computed, for the sessions so far."""
    novel = evaluation.session_of_class > 0
    label_counts = [0, *(nodes.size for nodes in evaluation.answered)]
    base = int((~novel).sum())
    classes_found = [
        RevealedLabels.of(stream, evaluation.answered[:t]).classes.size - base for t in range(len(label_counts))
    ]
    return ActiveRecord(
        labels=np.cumsum(label_counts),
        budget=sum(stream.budget(session) for session in range(1, len(stream) + 1)),
        balanced=np.array([balanced_accuracy(confusion) for confusion in evaluation.confusions]),
        novel=np.array([balanced_accuracy(confusion, novel) for confusion in evaluation.confusions]),
        classes_found=np.array(classes_found),
        classes=int(novel.sum()),
    )


def _vectors(learner: Learner, visible: VisibleNodes, seed: int) -> np.ndarray:
    """Vectors by which nodes are compared, shape (n, d): the learner's own, or untrained ones if it has none."""
    own = learner.vectors_to_draw(visible, visible.nodes)
    return untrained_vectors(visible, seed=seed) if own is None else np.asarray(own, dtype=np.float32)


def _choose_nodes(
    chooser: Chooser,
    learner: Learner,
    stream: Stream,
    session: int,
    revealed: RevealedLabels,
    predictions: _Predictions,
) -> np.ndarray:
    """Let a strategy choose nodes; return their numbers."""
    random = strategy_generator(stream.graph, stream.seed, session)
    free = np.setdiff1d(stream.candidates, revealed.nodes)
    if isinstance(chooser, OfEachClass):
        return chooser.nodes(stream, session, free, random)
    base, visible = stream.base, stream.visible_graph(session)
    labelled = np.concatenate([base.train, base.validation, revealed.nodes])
    columns = np.concatenate([base.train_labels, base.validation_labels, revealed.columns])
    state = ActiveLearningState(
        visible=visible,
        vectors=_vectors(learner, visible, stream.seed),
        candidates=visible.rows(free),
        labelled=visible.rows(labelled),
        columns=columns,
        late=stream.session_of_class[revealed.classes] > 0,
        scores=predictions.scores,
        unknown_score=predictions.unknown_score,
        budget=stream.budget(session),
        random=random,
    )
    queries = checked(chooser.choose(state), state, chooser.name)
    return visible.nodes[np.array([query.row for query in queries], dtype=np.int64)]
