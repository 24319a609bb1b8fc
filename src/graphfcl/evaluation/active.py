"""Evaluate a learner and a strategy on a stream of the track ``active``.

In each session the strategy selects candidates within a budget; their labels are revealed, whatever class they are of,
and passed to the learner as a session. Only this module knows the labels of candidates before that. A class joins the
learner's columns with its first labelled node; metrics count all classes of the stream.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from graphfcl.active import OF_EACH_CLASS, ActiveLearningState, Strategy, checked, find_strategy
from graphfcl.active.untrained import untrained_vectors
from graphfcl.evaluation.evaluate import Evaluation, fit_base, learner_for, scores_in_blocks, tell_session
from graphfcl.graph import VisibleNodes
from graphfcl.methods.blocks.work_folder import alone_on
from graphfcl.methods.learner import NO_STORE, SILENT, EncoderStore, Learner, Progress
from graphfcl.methods.progress import progress_of
from graphfcl.metrics import ActiveRecord, balanced_accuracy, confusion_matrix
from graphfcl.stream import Session, Stream
from graphfcl.stream.split import strategy_generator


class OfEachClass:
    """K random candidates of each class that the session would bring: a reference that needs an oracle.

    It is no strategy, because it uses the classes of unlabelled nodes.
    """

    name = OF_EACH_CLASS
    title = "K random nodes of each new class: needs an oracle"

    def nodes(self, stream: Stream, session: int, free: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """free: numbers of candidates without a label."""
        columns = stream.columns_of(free)
        arriving = np.flatnonzero(stream.session_of_class == session)
        drawn = [random.permutation(free[columns == column])[: stream.protocol.shot] for column in arriving]
        return np.concatenate(drawn)


Chooser = Strategy | OfEachClass


def find_chooser(name: str, source: str = "") -> Chooser:
    """What selects nodes: a strategy by its name, or ``of-each-class``."""
    return OfEachClass() if name == OF_EACH_CLASS else find_strategy(name, source).make()


def needs_oracle(name: str) -> bool:
    """Whether a row of this name uses labels that no user has."""
    return name == OF_EACH_CLASS


@dataclass(frozen=True, eq=False)
class Answers:
    """The labels revealed so far.

    nodes: (m,) numbers, in the order of selection. columns: (m,) as the learner counts classes.
    classes: the stream's column of each of the learner's.
    """

    nodes: np.ndarray
    columns: np.ndarray
    classes: np.ndarray

    @classmethod
    def of(cls, stream: Stream, answered: Sequence[np.ndarray]) -> "Answers":
        """After some sessions, from the numbers that were labelled in each."""
        base = np.flatnonzero(stream.session_of_class == 0)
        answers = cls(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), base)
        for nodes in answered:
            answers = answers.plus(stream, nodes)
        return answers

    def plus(self, stream: Stream, nodes: np.ndarray) -> "Answers":
        """With more nodes; new classes follow in the order in which their first node was selected."""
        true = stream.columns_of(nodes)
        values, first = np.unique(true, return_index=True)
        new = values[np.argsort(first)]
        classes = np.concatenate([self.classes, new[~np.isin(new, self.classes)]])
        place = np.empty(len(stream.classes), dtype=np.int64)
        place[classes] = np.arange(classes.size)
        return Answers(np.concatenate([self.nodes, nodes]), np.concatenate([self.columns, place[true]]), classes)


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
    """Fit on session 0; then, in each session, select nodes, reveal their labels, learn them, and score all nodes.

    chooser: what selects nodes, or what makes it, such as a class. A new object is made for each session, so that a
    strategy that keeps something in itself ends with the same numbers if its run is interrupted.
    learner, settings, progress, done, on_session, encoders: as for :func:`evaluate`. An interrupted run continues
    with the same numbers: what a strategy draws depends on seed and session alone.
    """
    learner = learner_for(learner, stream, settings)
    stream = stream.fresh()
    evaluation = done or Evaluation.start(learner, stream)
    opinion: _Opinion | None = None
    with alone_on(stream.graph), progress_of(progress) as watching:
        for number in range(len(evaluation.confusions), len(stream) + 1):
            answered, answers = evaluation.answered, Answers.of(stream, evaluation.answered)
            if number == 0:
                seconds = _seconds(partial(fit_base, learner, stream, watching, encoders))
            else:
                if opinion is None:  # of a run that continues
                    opinion = _Opinion.of(learner, stream, number - 1, answers)
                selects = chooser() if callable(chooser) else chooser
                nodes = _selected(selects, learner, stream, number, answers, opinion)
                before, answers, answered = answers, answers.plus(stream, nodes), (*answered, nodes)
                session = _session(stream, number, before, answers)
                seconds = _seconds(partial(learner.learn, session)) if nodes.size else 0.0
            opinion = _Opinion.of(learner, stream, number, answers)
            evaluation = replace(
                evaluation,
                confusions=(*evaluation.confusions, opinion.confusion(stream, number, answers)),
                seconds=(*evaluation.seconds, seconds),
                answered=answered,
            )
            if on_session is not None:
                on_session(evaluation)
            tell_session(watching, evaluation, len(stream))
    return evaluation


def _session(stream: Stream, number: int, before: Answers, answers: Answers) -> Session:
    """What a learner gets: the labels of this session, and the names of classes that it brings."""
    new = tuple(stream.classes[column] for column in answers.classes[before.classes.size :])
    first = before.nodes.size
    return stream.active_session(number, new, answers.nodes[first:].copy(), answers.columns[first:].copy())


def _seconds(learn: Callable[[], object]) -> float:
    start = time.perf_counter()
    learn()
    return time.perf_counter() - start


@dataclass(frozen=True, eq=False)
class _Opinion:
    """The predictions of a learner for every visible node.

    likeliest: (n,) the learner's column. scores: (n, C) probabilities. unknown_score: (n,).
    """

    likeliest: np.ndarray
    scores: np.ndarray
    unknown_score: np.ndarray

    @classmethod
    def of(cls, learner: Learner, stream: Stream, session: int, answers: Answers) -> "_Opinion":
        """Probabilities are the softmax of the scores; unknown_score is the energy −log Σ exp, standardised."""
        numbers, classes = stream.evaluation_numbers(session), answers.classes.size
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

    def confusion(self, stream: Stream, session: int, answers: Answers) -> np.ndarray:
        """Over all classes of the stream; nothing is predicted to be of a class that was not found."""
        queries, numbers = stream.queries(session), stream.evaluation_numbers(session)
        predicted = answers.classes[self.likeliest[np.searchsorted(numbers, queries.nodes)]]
        return confusion_matrix(queries.labels, predicted, len(stream.classes))


def active_record(evaluation: Evaluation, stream: Stream) -> ActiveRecord:
    """What the metrics of the track are computed from, of the sessions so far."""
    novel = evaluation.session_of_class > 0
    spent = [0, *(nodes.size for nodes in evaluation.answered)]
    base = int((~novel).sum())
    classes_found = [Answers.of(stream, evaluation.answered[:t]).classes.size - base for t in range(len(spent))]
    return ActiveRecord(
        labels=np.cumsum(spent),
        budget=sum(stream.budget(session) for session in range(1, len(stream) + 1)),
        balanced=np.array([balanced_accuracy(confusion) for confusion in evaluation.confusions]),
        novel=np.array([balanced_accuracy(confusion, novel) for confusion in evaluation.confusions]),
        classes_found=np.array(classes_found),
        classes=int(novel.sum()),
    )


def _vectors(learner: Learner, visible: VisibleNodes, seed: int) -> np.ndarray:
    """(n, d) what nodes are compared by: the learner's own vectors, or untrained ones."""
    own = learner.vectors_to_draw(visible, visible.nodes)
    return untrained_vectors(visible, seed=seed) if own is None else np.asarray(own, dtype=np.float32)


def _selected(
    chooser: Chooser, learner: Learner, stream: Stream, session: int, answers: Answers, opinion: _Opinion
) -> np.ndarray:
    """The numbers of the nodes that a strategy selects."""
    random = strategy_generator(stream.graph, stream.seed, session)
    free = np.setdiff1d(stream.candidates, answers.nodes)
    if isinstance(chooser, OfEachClass):
        return chooser.nodes(stream, session, free, random)
    base, visible = stream.base, stream.visible_graph(session)
    labelled = np.concatenate([base.train, base.validation, answers.nodes])
    columns = np.concatenate([base.train_labels, base.validation_labels, answers.columns])
    state = ActiveLearningState(
        visible=visible,
        vectors=_vectors(learner, visible, stream.seed),
        candidates=visible.rows(free),
        labelled=visible.rows(labelled),
        columns=columns,
        late=stream.session_of_class[answers.classes] > 0,
        scores=opinion.scores,
        unknown_score=opinion.unknown_score,
        budget=stream.budget(session),
        random=random,
    )
    queries = checked(chooser.choose(state), state, chooser.name)
    return visible.nodes[np.array([query.row for query in queries], dtype=np.int64)]
