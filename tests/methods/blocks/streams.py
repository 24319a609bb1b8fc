"""Streams of a graph folder, on disk and in memory, and the scores of learners on them."""

from pathlib import Path
from typing import Any

import numpy as np

from graphfcl import GraphFolder, Learner, Resources, Stream, Tasks, make_stream
from tests.methods.blocks.samples import ROOMY

RULES: dict[str, Any] = {"base": 3, "pseudo_novel": 3, "way": 2, "shot": 3}


def stream_of(folder: GraphFolder, work: Path, *, workers: int = 1, memory: int = ROOMY, track: str = "open") -> Stream:
    graph = folder.with_resources(Resources(work, memory, Tasks(workers=workers)))
    return make_stream(graph, seed=1, track=track, **RULES)


def loaded_stream(folder: GraphFolder, work: Path, track: str = "open") -> Stream:
    return make_stream(folder.with_resources(Resources(work, ROOMY)).loaded(), seed=1, track=track, **RULES)


def scores_of_sessions(learner: Learner, stream: Stream) -> list[np.ndarray]:
    """The scores of all visible nodes after each session."""
    learner.fit(stream.base)
    actual = [learner.scores(stream.evaluation_graph(0), stream.evaluation_numbers(0))]
    for session in stream:
        learner.learn(session)
        number = session.number
        actual.append(learner.scores(stream.evaluation_graph(number), stream.evaluation_numbers(number)))
    return actual
