"""Walk a learner through a stream. Only this module knows which nodes are queries, and their labels."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from graphfcl.errors import DivergenceError, InputError
from graphfcl.evaluation.tables import Columns, arrow_table, data_frame, session_columns, text_of
from graphfcl.graph.convert import is_graph
from graphfcl.methods.blocks.work_folder import alone_on
from graphfcl.methods.learner import NO_STORE, SILENT, DeclaredFlags, EncoderStore, Learner, Progress
from graphfcl.methods.progress import progress_of
from graphfcl.metrics import StreamMetrics, balanced_accuracy, compute_stream_metrics, confusion_matrix
from graphfcl.runtime.arrays import read_only
from graphfcl.stream import Queries, Stream
from graphfcl.stream.split import draw_evaluation_order

BLOCKS = 4  # a learner is asked about all visible nodes in so many blocks,
LARGEST_BLOCK = 65_536  # or more, where a block would have more nodes than this


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """What a stream says of a learner, after all of its sessions or after the first few.

    confusions: for each session 0..t one (classes seen, classes seen) matrix; under the track ``active`` one of all
        classes of the stream.
    seconds: time to learn each session.
    answered: under the track ``active``, for each session 1..t the node numbers that were labelled, as they were named.
    flags: what the learner declared when the run started; its sessions are those of these flags.
    """

    confusions: tuple[np.ndarray, ...]
    seconds: tuple[float, ...]
    session_of_class: np.ndarray
    answered: tuple[np.ndarray, ...] = ()
    flags: DeclaredFlags = DeclaredFlags()  # noqa: RUF009  # it is frozen

    @classmethod
    def start(cls, learner: Learner, stream: Stream) -> "Evaluation":
        """The evaluation before session 0: reads the flags of the learner."""
        return cls((), (), stream.session_of_class, flags=DeclaredFlags.of(learner))

    @cached_property
    def metrics(self) -> StreamMetrics:
        return compute_stream_metrics(self.confusions, self.session_of_class)

    @cached_property
    def _columns(self) -> Columns:
        return session_columns(self.metrics, self.seconds, self.answered)

    def __repr__(self) -> str:
        if not self.confusions:
            return "Evaluation(no session yet)"
        return f"Evaluation({len(self.confusions)} sessions, average accuracy {100 * self.metrics.average:.2f} %)"

    def __str__(self) -> str:
        """A table with a row for each session, and the figures of the whole stream."""
        return text_of(self._columns, self.metrics) if self.confusions else repr(self)

    def to_frame(self) -> Any:
        """A DataFrame of pandas with a row for each session: metrics are shares, seconds the time to learn."""
        return data_frame(self._columns)

    def to_arrow(self) -> Any:
        """The same as a table of pyarrow, which needs no pandas."""
        return arrow_table(self._columns)


def evaluate(
    learner: Learner,
    stream: Stream,
    *,
    progress: bool | Progress = SILENT,
    done: Evaluation | None = None,
    on_session: Callable[[Evaluation], object] | None = None,
    encoders: EncoderStore = NO_STORE,
) -> Evaluation:
    """Fit on session 0, learn the others one by one, and ask about all visible nodes after each.

    A stream of the track ``active`` is walked by :func:`~graphfcl.evaluation.active.evaluate_active`.

    The walk has visible graphs of its own: whatever a learner does to them, no other learner sees it.

    progress: what the learner tells while it works; True shows it.
    done: what an earlier, interrupted run of the same learner has found; its flags hold, and the next session follows.
    on_session: called with the evaluation so far after each session.
    encoders: where pre-trained encoders are found and left.
    """
    _refuse_others(learner, stream)
    if stream.protocol.track == "active":
        raise InputError("a stream of the track 'active' needs a strategy: use `evaluate_active`.")
    stream = stream.fresh()
    evaluation = done or Evaluation.start(learner, stream)
    flags = evaluation.flags
    labelled = stream.protocol.name == "paper" and flags.trains_on_query_labels
    with alone_on(stream.graph), progress_of(progress) as watching:
        for number in range(len(evaluation.confusions), len(stream) + 1):
            if number == 0:
                learn = partial(fit_base, learner, stream, watching, encoders)
            else:
                session = stream.session(number, with_query_labels=labelled, with_pool_labels=flags.uses_pool_labels)
                learn = partial(learner.learn, session)
            start = time.perf_counter()
            learn()
            seconds = time.perf_counter() - start
            confusion = ask(learner, stream, number)
            evaluation = replace(
                evaluation,
                confusions=(*evaluation.confusions, confusion),
                seconds=(*evaluation.seconds, seconds),
            )
            if on_session is not None:
                on_session(evaluation)
            tell_session(watching, evaluation, len(stream))
    return evaluation


def _refuse_others(learner: Any, stream: Any) -> None:
    """A name, a class and a graph are what one gives first; each gets the call that makes of it what is needed."""
    if isinstance(learner, str):
        raise InputError(f"evaluate needs a learner, and got a name: find_method({learner!r}).make(seed=0) makes one.")
    if isinstance(learner, type):
        raise InputError(
            f"evaluate needs a learner, and got the class {learner.__name__}: {learner.__name__}(seed=0) makes one."
        )
    if is_graph(stream):
        raise InputError(
            "evaluate needs a stream of sessions, and got a graph: make_stream(graph, seed=0) makes one of it."
        )


def ask(learner: Learner, stream: Stream, session: int) -> np.ndarray:
    """The confusion matrix after a session, in the joint label space of all classes seen.

    The learner is asked about all visible nodes, in blocks in which they are shuffled, and is not told which of them
    count. Under ``paper``, whose sessions name the queries, it is asked about those alone.
    """
    queries, classes = stream.queries(session), stream.classes_seen(session)
    numbers = stream.evaluation_numbers(session)
    found = np.full(numbers.size, -1, dtype=np.int64)
    for nodes, scores in scores_in_blocks(learner, stream, session, classes):
        found[np.searchsorted(numbers, nodes)] = scores.argmax(axis=1)
    return confusion_matrix(queries.labels, found[np.searchsorted(numbers, queries.nodes)], classes)


def scores_in_blocks(
    learner: Learner, stream: Stream, session: int, classes: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Node numbers that a learner is asked about after a session, and its (nodes, classes) scores, block by block."""
    visible, numbers = stream.evaluation_graph(session), stream.evaluation_numbers(session)
    for nodes in _asked(numbers, stream.queries(session), stream, session):
        # A copy: whatever a learner does to it, here it stays known who was asked about.
        scores = np.asarray(learner.scores(visible, read_only(nodes.copy())))
        _refuse_wrong_scores(scores, nodes.size, classes, session)
        yield nodes, scores


def _asked(numbers: np.ndarray, queries: Queries, stream: Stream, session: int) -> list[np.ndarray]:
    """The node numbers a learner is asked about, block by block."""
    if stream.protocol.name == "paper":
        return [queries.nodes]
    if stream.graph.shuffled:
        # In the order of the graph's nodes: on the disk a block is then a range of rows, which is read at once.
        order = numbers[np.argsort(stream.node_of_number[numbers])]
    else:
        order = draw_evaluation_order(stream.graph, stream.seed, session, numbers)
    return np.array_split(order, max(BLOCKS, -(-order.size // LARGEST_BLOCK)))


def fit_base(learner: Learner, stream: Stream, progress: Progress, encoders: EncoderStore) -> None:
    """Session 0."""
    learner.fit(stream.base, told_by(progress), asked_from(encoders))


def tell_session(progress: Progress, evaluation: Evaluation, sessions: int) -> None:
    """Say that a session is done, and how well. sessions: of the stream, without session 0."""
    confusion = evaluation.confusions[-1]
    progress.step("sessions", len(evaluation.confusions) - 1, sessions, score=balanced_accuracy(confusion))


def told_by(progress: Progress) -> Progress:
    """What a learner is handed of the progress: two functions, and nothing that knows stream, folder or results."""
    outside = Progress()
    outside.step = lambda *given, **named: progress.step(*given, **named)  # type: ignore[method-assign]
    outside.checkpoint = lambda learner: progress.checkpoint(learner)  # type: ignore[method-assign]
    return outside


def asked_from(encoders: EncoderStore) -> EncoderStore:
    """The same of the encoders: one function."""
    outside = EncoderStore()
    outside.get = lambda key, compute: encoders.get(key, compute)  # type: ignore[method-assign]
    return outside


def _refuse_wrong_scores(scores: np.ndarray, nodes: int, classes: int, session: int) -> None:
    if scores.shape != (nodes, classes):
        raise InputError(
            f"after session {session} the learner's scores have shape {scores.shape}; {nodes} nodes and {classes} "
            f"classes need {(nodes, classes)}."
        )
    if np.isnan(scores).any():
        raise DivergenceError(
            f"after session {session} the learner's scores are NaN: it has diverged; try a smaller learning rate."
        )
