"""Evaluate a learner on a stream. Only this module knows which nodes are queries, and their labels."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.errors import DivergenceError, InputError
from graphfcl.graph.convert import is_graph
from graphfcl.methods.blocks.work_folder import alone_on
from graphfcl.methods.learner import NO_STORE, SILENT, DeclaredFlags, EncoderStore, Learner, Progress
from graphfcl.methods.progress import progress_of
from graphfcl.methods.registry import find_method
from graphfcl.metrics import (
    StreamMetrics,
    balanced_accuracy,
    compute_stream_metrics,
    confusion_matrix,
    session_metrics,
    stream_metrics,
)
from graphfcl.runtime.arrays import read_only
from graphfcl.runtime.figures import draw_sessions, new_figure, save_figure
from graphfcl.runtime.html import html_table
from graphfcl.stream import Queries, Stream
from graphfcl.stream.split import draw_evaluation_order

BLOCKS = 4  # in which a learner scores the visible nodes,
LARGEST_BLOCK = 65_536  # or more, where a block would have more nodes than this
WHOLE = ("session", "classes", "labels")  # columns of whole numbers


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """The result of a learner on a stream, after all of its sessions or after the first few.

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

    def __repr__(self) -> str:
        if not self.confusions:
            return "Evaluation(no session yet)"
        return f"Evaluation({len(self.confusions)} sessions, average accuracy {100 * self.metrics.average:.2f} %)"

    def __str__(self) -> str:
        """A table with a row for each session, accuracies in %, and the figures of the whole stream."""
        if not self.confusions:
            return repr(self)
        shown = self._shown()
        lines = _aligned(list(shown), list(zip(*shown.values(), strict=True)))
        return "\n".join([*lines, "", *_stream_lines(self.metrics)])

    def _repr_html_(self) -> str:
        """The same table for a notebook."""
        if not self.confusions:
            return html_table(repr(self), ())
        shown = self._shown()
        return html_table(
            repr(self), zip(*shown.values(), strict=True), [*shown], "\n".join(_stream_lines(self.metrics))
        )

    def _shown(self) -> dict[str, list[str]]:
        """The columns of the table that is printed."""
        columns = self._columns
        shown = {name: [str(each) for each in columns[name]] for name in WHOLE if name in columns}
        for metric in session_metrics():
            if "print" in metric.places:
                shown[metric.title] = [metric.text(value) for value in columns[metric.name]]
        shown["seconds"] = [f"{value:.2f}" for value in columns["seconds"]]
        return shown

    def plot(self, path: str | Path | None = None) -> Any:
        """A figure of matplotlib: balanced accuracy by session. path: also write it there as PNG."""
        if not self.confusions:
            raise InputError("this evaluation has no session yet: evaluate a learner on a stream first.")
        figure, axes = new_figure(6.4, 3.8)
        draw_sessions(axes, [{"session": each.session, **each.values} for each in self.metrics.sessions])
        if path is not None:
            save_figure(figure, path)
        return figure

    def to_frame(self) -> Any:
        """A DataFrame of pandas with a row for each session: metrics are shares, seconds the time to learn."""
        try:
            import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]  # noqa: F401
        except ImportError as error:
            raise InputError("to_frame needs pandas: `pip install pandas`, or use to_arrow().") from error
        return self.to_arrow().to_pandas()

    def to_arrow(self) -> Any:
        """The same as a table of pyarrow, which needs no pandas."""
        import pyarrow as pa

        columns = self._columns
        return pa.table({n: pa.array(v, pa.int64() if n in WHOLE else pa.float64()) for n, v in columns.items()})

    @cached_property
    def _columns(self) -> dict[str, list[Any]]:
        """A row for each session: number, classes seen, every metric (None where it has none), seconds.

        Under the track ``active`` the column ``labels`` counts the labels spent until then.
        """
        sessions = self.metrics.sessions
        columns: dict[str, list[Any]] = {
            "session": [each.session for each in sessions],
            "classes": [each.classes for each in sessions],
        }
        if self.answered:
            columns["labels"] = np.cumsum([0, *(nodes.size for nodes in self.answered)]).tolist()
        for metric in session_metrics():
            columns[metric.name] = [each.values[metric.name] for each in sessions]
        columns["seconds"] = list(self.seconds)
        return columns


def _stream_lines(metrics: StreamMetrics) -> list[str]:
    """The figures of the whole stream; those with the same note stand in one line."""
    lines = []
    for note, group in groupby(
        (each for each in stream_metrics() if "print" in each.places), key=lambda each: each.note
    ):
        figures = "  ".join(f"{each.title} {each.text(metrics.values[each.name])}".rstrip() for each in group)
        lines.append(f"{figures}  ({note})" if note else figures)
    return lines


def _aligned(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines in which every column is as wide as its widest cell, aligned to the right."""
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in (titles, *rows)]


def evaluate(
    learner: Learner | str,
    stream: Stream,
    *,
    settings: Mapping[str, Any] | None = None,
    progress: bool | Progress = SILENT,
    done: Evaluation | None = None,
    on_session: Callable[[Evaluation], object] | None = None,
    encoders: EncoderStore = NO_STORE,
) -> Evaluation:
    """Fit on session 0, learn the others one by one, and score all visible nodes after each.

    A stream of the track ``active`` needs :func:`~graphfcl.evaluation.active.evaluate_active`.

    Every evaluation has visible graphs of its own: what a learner does to them, no other learner sees.

    learner: one that is made, or the name of a method, which gets the seed of the stream. settings: with a name, those
    that differ from the method's defaults.
    progress: receives what the learner reports while it works; True shows it.
    done: the evaluation of an interrupted run of the same learner; its flags hold, and the next session follows.
    on_session: called with the evaluation so far after each session.
    encoders: where pre-trained encoders are read and stored.
    """
    learner = learner_for(learner, stream, settings)
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


def learner_for(learner: Any, stream: Any, settings: Mapping[str, Any] | None) -> Learner:
    """The learner to evaluate on a stream: itself, or that of a method's name.

    A class and a graph are what one gives first; each gets the call that makes of it what is needed.
    """
    if is_graph(stream):
        raise InputError(
            "evaluate needs a stream of sessions, and got a graph: make_stream(graph, seed=0) makes one of it."
        )
    if isinstance(learner, str):
        return find_method(learner).make(dict(settings or {}), seed=stream.seed)
    if isinstance(learner, type):
        raise InputError(
            f"evaluate needs a learner, and got the class {learner.__name__}: {learner.__name__}(seed=0) makes one."
        )
    if settings is not None:
        raise InputError("settings belong to the name of a method: a learner that is made has its own, leave them out.")
    return learner


def ask(learner: Learner, stream: Stream, session: int) -> np.ndarray:
    """The confusion matrix after a session, in the joint label space of all classes seen.

    The learner scores all visible nodes, in shuffled blocks, so that it cannot see which of them count. Under
    ``paper``, whose sessions name the queries, it scores those alone.
    """
    queries, classes = stream.queries(session), stream.classes_seen(session)
    numbers = stream.evaluation_numbers(session)
    predicted = np.full(numbers.size, -1, dtype=np.int64)
    for nodes, scores in scores_in_blocks(learner, stream, session, classes):
        predicted[np.searchsorted(numbers, nodes)] = scores.argmax(axis=1)
    return confusion_matrix(queries.labels, predicted[np.searchsorted(numbers, queries.nodes)], classes)


def scores_in_blocks(
    learner: Learner, stream: Stream, session: int, classes: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Node numbers that a learner scores after a session, and its (nodes, classes) scores, block by block."""
    visible, numbers = stream.evaluation_graph(session), stream.evaluation_numbers(session)
    for nodes in _blocks(numbers, stream.queries(session), stream, session):
        # A copy: the learner may change what it gets.
        scores = np.asarray(learner.scores(visible, read_only(nodes.copy())))
        _refuse_wrong_scores(scores, nodes.size, classes, session)
        yield nodes, scores


def _blocks(numbers: np.ndarray, queries: Queries, stream: Stream, session: int) -> list[np.ndarray]:
    """The node numbers that a learner scores, block by block."""
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
    learner.fit(stream.base, _only_progress(progress), _only_encoders(encoders))


def tell_session(progress: Progress, evaluation: Evaluation, sessions: int) -> None:
    """Say that a session is done, and how well. sessions: of the stream, without session 0."""
    confusion = evaluation.confusions[-1]
    progress.step("sessions", len(evaluation.confusions) - 1, sessions, score=balanced_accuracy(confusion))


def _only_progress(progress: Progress) -> Progress:
    """What a learner gets of the progress: two functions, and nothing that holds stream, folder or results."""
    only = Progress()
    only.step = lambda *values, **named: progress.step(*values, **named)  # type: ignore[method-assign]
    only.checkpoint = lambda learner: progress.checkpoint(learner)  # type: ignore[method-assign]
    return only


def _only_encoders(encoders: EncoderStore) -> EncoderStore:
    """The same of the encoders: one function."""
    only = EncoderStore()
    only.get = lambda key, compute: encoders.get(key, compute)  # type: ignore[method-assign]
    return only


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
