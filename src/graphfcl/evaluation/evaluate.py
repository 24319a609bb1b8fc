"""Walk a learner through a stream. Only this module holds the query labels."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from graphfcl.errors import InputError
from graphfcl.measures import (
    SessionMeasures,
    StreamMeasures,
    confusion_matrix,
    measure_session,
    measure_stream,
)
from graphfcl.methods.learner import Learner
from graphfcl.stream import Stream


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What a stream says of a learner.

    confusions: for each session 0..T one (classes seen, classes seen) matrix.
    seconds: time to learn each session.
    """

    confusions: tuple[np.ndarray, ...]
    seconds: tuple[float, ...]
    session_of_class: np.ndarray

    @cached_property
    def measures(self) -> StreamMeasures:
        return measure_stream(self.confusions, self.session_of_class)


def evaluate(
    learner: Learner, stream: Stream, on_session: Callable[[SessionMeasures], object] | None = None
) -> Evaluation:
    """Fit on session 0, learn the others one by one, and ask about all queries after each.

    on_session: called with the measures of each session as soon as they are known.
    """
    confusions, seconds = [], []
    for number in range(len(stream) + 1):
        learn = partial(learner.fit, stream.base) if number == 0 else partial(learner.learn, stream.session(number))
        start = time.perf_counter()
        learn()
        seconds.append(time.perf_counter() - start)
        confusions.append(ask(learner, stream, number))
        if on_session is not None:
            on_session(measure_session(confusions[-1], stream.session_of_class, number))
    return Evaluation(tuple(confusions), tuple(seconds), stream.session_of_class)


def ask(learner: Learner, stream: Stream, session: int) -> np.ndarray:
    """The confusion matrix after a session, in the joint label space of all classes seen."""
    queries, classes = stream.queries(session), stream.classes_seen(session)
    scores = np.asarray(learner.scores(stream.evaluation_graph(session), queries.nodes))
    if scores.shape != (queries.nodes.size, classes):
        raise InputError(
            f"after session {session} the learner's scores have shape {scores.shape}; {queries.nodes.size} nodes and "
            f"{classes} classes need {(queries.nodes.size, classes)}."
        )
    if np.isnan(scores).any():
        raise InputError(
            f"after session {session} the learner's scores are NaN: it has diverged; try a smaller learning rate."
        )
    return confusion_matrix(queries.labels, scores.argmax(axis=1), classes)
