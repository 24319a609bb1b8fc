"""Evaluate a learner on a stream. Under ``strict``, learners receive neither test nodes nor their labels."""

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
from graphfcl.methods.learner import SILENT, DeclaredFlags, Learner, Progress
from graphfcl.methods.progress import progress_of
from graphfcl.methods.registry import find_method
from graphfcl.methods.state import NO_STORE, EncoderStore
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

FEWEST_BLOCKS = 4  # least number of blocks in which a learner scores the visible nodes
LARGEST_BLOCK = 65_536  # nodes in a block
INTEGER_COLUMNS = ("session", "classes", "labels")


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Result of a learner on a stream, after all sessions or the first few.

    Printing it shows a table with a row for each session. :func:`evaluate` and :func:`evaluate_active` return it.

    Args:
        confusions: One matrix for each session 0..t, shape (classes seen, classes seen). Entry (j, k) counts test nodes
            of class j that were predicted as class k. Under the track ``active`` each matrix has all classes of the
            stream.
        seconds: Seconds to fit session 0 and to learn each later session.
        session_of_class: Session in which each class arrives, shape (classes,).
        answered: Under the track ``active``, the numbers of the nodes that were labelled in each session 1..t, in the
            order in which they were chosen. Empty otherwise.
        flags: What the learner declared about its use of labels when the run started.

    Attributes:
        metrics: All metrics of the sessions and of the stream.

    Examples:
        >>> from graphfcl import evaluate, load_dataset, make_stream
        >>> graph, _ = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=30")
        >>> evaluation = evaluate("sgc-ridge", make_stream(graph, way=1, shot=5, seed=0))
        >>> [matrix.shape for matrix in evaluation.confusions]
        [(4, 4), (5, 5), (6, 6)]
        >>> bool(evaluation.metrics.average > 0.5)
        True
        >>> evaluation.to_arrow().column_names[:3]
        ['session', 'classes', 'balanced_accuracy']
    """

    confusions: tuple[np.ndarray, ...]
    seconds: tuple[float, ...]
    session_of_class: np.ndarray
    answered: tuple[np.ndarray, ...] = ()
    flags: DeclaredFlags = DeclaredFlags()  # noqa: RUF009  # it is frozen

    @classmethod
    def start(cls, learner: Learner, stream: Stream) -> "Evaluation":
        """Return the empty evaluation before session 0.

        Args:
            learner: Learner to be evaluated. Its flags are stored.
            stream: Stream to evaluate it on.

        Returns:
            An evaluation without sessions, to be passed on as ``done``.
        """
        return cls((), (), stream.session_of_class, flags=DeclaredFlags.of(learner))

    @cached_property
    def metrics(self) -> StreamMetrics:
        """All metrics of the sessions and of the stream."""
        return compute_stream_metrics(self.confusions, self.session_of_class)

    def __repr__(self) -> str:
        if not self.confusions:
            return "Evaluation(no session yet)"
        return f"Evaluation({len(self.confusions)} sessions, average accuracy {100 * self.metrics.average:.2f} %)"

    def __str__(self) -> str:
        """Format a table with a row for each session, in percent, followed by the metrics of the whole stream."""
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
        """The columns of the printed table, as texts."""
        columns = self._columns
        shown = {name: [str(each) for each in columns[name]] for name in INTEGER_COLUMNS if name in columns}
        for metric in session_metrics():
            if "print" in metric.places:
                shown[metric.title] = [metric.text(value) for value in columns[metric.name]]
        shown["seconds"] = [f"{value:.2f}" for value in columns["seconds"]]
        return shown

    def plot(self, path: str | Path | None = None) -> Any:
        """Plot balanced accuracy by session.

        Args:
            path: PNG file to write the figure to. By default no file is written.

        Returns:
            The matplotlib figure.

        Raises:
            InputError: If the evaluation has no session yet.
            OSError: If the file cannot be written.
        """
        if not self.confusions:
            raise InputError("this evaluation has no session yet: evaluate a learner on a stream first.")
        figure, axes = new_figure(6.4, 3.8)
        draw_sessions(axes, [{"session": each.session, **each.values} for each in self.metrics.sessions])
        if path is not None:
            save_figure(figure, path)
        return figure

    def to_frame(self) -> Any:
        """Convert to a pandas DataFrame with a row for each session.

        Returns:
            A DataFrame with session, classes, every metric as a share (not percent), and the seconds of learning.

        Raises:
            InputError: If pandas is not installed.
        """
        try:
            import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]  # noqa: F401
        except ImportError as error:
            raise InputError(
                "to_frame needs pandas, which is not installed: `pip install pandas`, or use to_arrow()."
            ) from error
        return self.to_arrow().to_pandas()

    def to_arrow(self) -> Any:
        """Convert to a pyarrow table with the columns of :meth:`to_frame`; pandas is not needed.

        Returns:
            A table with a row for each session.
        """
        import pyarrow as pa

        columns = self._columns
        return pa.table(
            {n: pa.array(v, pa.int64() if n in INTEGER_COLUMNS else pa.float64()) for n, v in columns.items()}
        )

    @cached_property
    def _columns(self) -> dict[str, list[Any]]:
        """Columns with a value for each session: number, classes seen, every metric (None if undefined), seconds.

        Under the track ``active`` the column ``labels`` counts the labels used until then.
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
    """Format the metrics of the whole stream. Successive metrics with the same note share a line."""
    lines = []
    for note, group in groupby(
        (each for each in stream_metrics() if "print" in each.places), key=lambda each: each.note
    ):
        figures = "  ".join(f"{each.title} {each.text(metrics.values[each.name])}".rstrip() for each in group)
        lines.append(f"{figures}  ({note})" if note else figures)
    return lines


def _aligned(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Format rows as lines with right-aligned columns."""
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
    """Evaluate a learner on all sessions of a stream.

    The learner is fitted on session 0 and learns the other sessions one by one. After each session it scores all
    visible nodes (under ``paper``, the queries), and its predictions of the test nodes are counted. Each evaluation has
    its own copies of the visible graphs, so a learner cannot influence another one. Streams of the track ``active``
    need :func:`evaluate_active`.

    Args:
        learner: Learner object, or the name of a method. A method of that name is made with the seed of the stream.
        stream: Stream of sessions, from :func:`make_stream` or :func:`load_stream`.
        settings: With a method's name, the settings that differ from its defaults.
        progress: True shows progress bars. A :class:`Progress` receives what the learner reports.
        done: Evaluation of an interrupted run of the same learner. The run continues with the next session.
        on_session: Function that is called after each session with the evaluation so far.
        encoders: Store from which pre-trained encoders are read and to which they are written.

    Returns:
        The evaluation, with confusion matrices, times and metrics.

    Raises:
        InputError: If an argument cannot be used, or the learner's scores have the wrong shape.
        DivergenceError: If training diverges, or the learner's scores are NaN.

    Examples:
        >>> from graphfcl import evaluate, load_dataset, make_stream
        >>> graph, _ = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=30")
        >>> stream = make_stream(graph, way=1, shot=5, seed=0)
        >>> evaluate("sgc-ridge", stream)
        Evaluation(3 sessions, average accuracy ... %)
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
            confusion = compute_confusion(learner, stream, number)
            evaluation = replace(
                evaluation,
                confusions=(*evaluation.confusions, confusion),
                seconds=(*evaluation.seconds, seconds),
            )
            if on_session is not None:
                on_session(evaluation)
            report_session(watching, evaluation, len(stream))
    return evaluation


def learner_for(learner: Any, stream: Any, settings: Mapping[str, Any] | None) -> Learner:
    """Return the learner itself, or make the one of a method's name.

    Passing a class or a graph is a common mistake, so the error names the call that makes a learner or a stream of it.
    """
    if is_graph(stream):
        raise InputError(
            "evaluate needs a stream of sessions and got a graph: make one with make_stream(graph, seed=0)."
        )
    if isinstance(learner, str):
        return find_method(learner).make(dict(settings or {}), seed=stream.seed)
    if isinstance(learner, type):
        raise InputError(
            f"evaluate needs a learner and got the class {learner.__name__}: make one with {learner.__name__}(seed=0)."
        )
    if settings is not None:
        raise InputError(
            "settings need the name of a method: a learner object has its own settings, so leave them out."
        )
    return learner


def compute_confusion(learner: Learner, stream: Stream, session: int) -> np.ndarray:
    """Compute the confusion matrix after a session, in the joint label space of all classes seen.

    The learner scores all visible nodes in shuffled blocks, so that the request does not show which are test nodes.
    Under the protocol ``paper``, whose sessions contain the query nodes, it scores only these.
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
    """Yield blocks of node numbers and the learner's (nodes, classes) scores of them after a session."""
    visible, numbers = stream.evaluation_graph(session), stream.evaluation_numbers(session)
    for nodes in _blocks(numbers, stream.queries(session), stream, session):
        # A copy, because the learner could make the array writable and change it.
        scores = np.asarray(learner.scores(visible, read_only(nodes.copy())))
        _refuse_wrong_scores(scores, nodes.size, classes, session)
        yield nodes, scores


def _blocks(numbers: np.ndarray, queries: Queries, stream: Stream, session: int) -> list[np.ndarray]:
    """Split the node numbers that a learner scores into blocks."""
    if stream.protocol.name == "paper":
        return [queries.nodes]
    if stream.graph.shuffled:
        # In the order of the graph's rows: a block of a graph on disk is then one range, which is read at once.
        order = numbers[np.argsort(stream.node_of_number[numbers])]
    else:
        order = draw_evaluation_order(stream.graph, stream.seed, session, numbers)
    return np.array_split(order, max(FEWEST_BLOCKS, -(-order.size // LARGEST_BLOCK)))


def fit_base(learner: Learner, stream: Stream, progress: Progress, encoders: EncoderStore) -> None:
    """Fit a learner on session 0."""
    learner.fit(stream.base, _only_progress(progress), _only_encoders(encoders))


def report_session(progress: Progress, evaluation: Evaluation, sessions: int) -> None:
    """Report the last session and its accuracy. ``sessions`` is the number of sessions after session 0."""
    confusion = evaluation.confusions[-1]
    progress.step("sessions", len(evaluation.confusions) - 1, sessions, score=balanced_accuracy(confusion))


def _only_progress(progress: Progress) -> Progress:
    """Wrap a progress object, so that a learner cannot reach the stream, folders or results through it."""
    only = Progress()
    only.step = lambda *values, **named: progress.step(*values, **named)  # type: ignore[method-assign]
    only.checkpoint = lambda learner: progress.checkpoint(learner)  # type: ignore[method-assign]
    return only


def _only_encoders(encoders: EncoderStore) -> EncoderStore:
    """Wrap a store of encoders in the same way."""
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
