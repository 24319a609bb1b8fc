"""The subject of the contract checks: a learner class on small streams, and comparisons of its scores."""

import json
from functools import cache, cached_property
from typing import Any

import numpy as np
import torch

from graphfcl.datasets import load_dataset
from graphfcl.graph.graph import Graph
from graphfcl.methods.learner import DeclaredFlags, Learner, Progress
from graphfcl.methods.settings import with_changes
from graphfcl.methods.state import LearnerState
from graphfcl.stream.protocol import Protocol
from graphfcl.stream.sessions import Session
from graphfcl.stream.stream import Stream, make_stream

GRAPH = "synthetic:nodes=360,edges=1400,classes=9,features=100,signal=0.9,skew=0.4"
CLOSE = 1e-4  # relative tolerance between two computations of the same scores


class Broken(Exception):
    """A rule is broken; the message says why."""


class Subject:
    """A learner class under test, with a fitted learner that several rules share.

    ``settings`` are settings that differ from the defaults, for example to make the check faster.
    """

    def __init__(self, learner: type[Learner], settings: dict[str, Any] | None = None) -> None:
        self.learner, self.settings = learner, dict(settings or {})
        self._answers_of_seeds: dict[int, np.ndarray] = {}

    def make(self, seed: int = 0) -> Learner:
        return self.learner(with_changes(self.learner.settings_type(), self.settings, self.learner.name), seed=seed)

    def session(self, stream: Stream, number: int) -> Session:
        """Return a session as an evaluation passes it to the learner."""
        paper = stream.protocol.name == "paper" and self.flags.trains_on_query_labels
        return stream.session(number, with_query_labels=paper, with_pool_labels=self.flags.uses_pool_labels)

    @cached_property
    def flags(self) -> DeclaredFlags:
        return DeclaredFlags.of(self.make())

    def fitted(self, graph: str = GRAPH, *, seed: int = 0, **changes: Any) -> tuple[Stream, Learner]:
        """Return a small stream and a learner that is fitted to its session 0. ``changes`` change the protocol."""
        stream, learner = stream_of(graph, **changes), self.make(seed)
        learner.fit(stream.base)
        return stream, learner

    @cached_property
    def after_session(self) -> Learner:
        """A learner after its first novel session. Rules only call its ``scores``."""
        stream, learner = self.fitted()
        learner.learn(self.session(stream, 1))
        return learner

    @cached_property
    def answers(self) -> np.ndarray:
        """(n, C) scores of ``after_session`` for all nodes that are visible after the first novel session."""
        return self._scores_of(self.after_session)

    def answers_of_seed(self, seed: int) -> np.ndarray:
        """Compute :attr:`answers` with another seed."""
        if seed not in self._answers_of_seeds:
            stream, learner = self.fitted(seed=seed)
            learner.learn(self.session(stream, 1))
            self._answers_of_seeds[seed] = self._scores_of(learner)
        return self._answers_of_seeds[seed]

    def _scores_of(self, learner: Learner) -> np.ndarray:
        visible = stream_of().evaluation_graph(1)
        return learner.scores(visible, visible.nodes)

    def loaded(self, state: LearnerState) -> Learner:
        """Load a state into a new learner after it was converted to the bytes of a file and back."""
        learner = self.make()
        learner.load_state(through_a_file(state))
        return learner


def stream_of(graph: str = GRAPH, **changes: Any) -> Stream:
    """Make a small stream. Each call makes a new one, because a learner may write into the arrays it receives."""
    return make_stream(_graph(graph), Protocol(base=4, pseudo_novel=3, way=1, shot=4), seed=0, **changes)


@cache
def _graph(name: str) -> Graph:
    return load_dataset(name)[0]


def through_a_file(state: LearnerState) -> LearnerState:
    """Convert a state to the bytes of a checkpoint and back."""
    from safetensors.torch import load, save

    for name, tensor in state.tensors.items():
        if not isinstance(tensor, torch.Tensor):
            raise Broken(f"state().tensors[{name!r}] is a {type(tensor).__name__}, not a tensor.")
    try:
        values = json.dumps(state.values)
    except (TypeError, ValueError) as error:
        raise Broken(f"state().values cannot be written as JSON ({error}).") from error
    return LearnerState(load(save({n: t.contiguous() for n, t in state.tensors.items()})), json.loads(values))


class Checkpoints(Progress):
    """Collects the state at each checkpoint."""

    def __init__(self) -> None:
        self.kept: list[LearnerState] = []

    def checkpoint(self, learner: Learner) -> None:
        self.kept.append(learner.state())


def ask(learner: Learner, stream: Stream, session: int) -> np.ndarray:
    """Compute the scores of all queries after a session, and check their type and shape."""
    nodes, classes = stream.queries(session).nodes, stream.classes_seen(session)
    scores = learner.scores(stream.evaluation_graph(session), nodes)
    if not isinstance(scores, np.ndarray) or scores.dtype.kind != "f":
        raise Broken("scores() must return a numpy array of floats.")
    if scores.shape != (nodes.size, classes):
        raise Broken(f"scores() has shape {scores.shape}; it must be ({nodes.size}, {classes}), nodes by classes seen.")
    if tuple(learner.classes_) != stream.classes[:classes]:
        raise Broken(f"after session {session}, classes_ is {learner.classes_}; it must be {stream.classes[:classes]}.")
    if np.isnan(scores).any():
        raise Broken(f"scores() has {int(np.isnan(scores).sum())} NaN after session {session}.")
    return scores


def same(actual: np.ndarray, expected: np.ndarray, complaint: str) -> None:
    size = max(1.0, float(np.abs(expected[np.isfinite(expected)]).max(initial=0.0)))
    if actual.shape != expected.shape or not np.allclose(actual, expected, rtol=CLOSE, atol=CLOSE * size):
        raise Broken(f"{complaint}.")


def agreement_of(first: np.ndarray, second: np.ndarray) -> float:
    """Compute the fraction of nodes to which two (n, C) score arrays assign the same class."""
    return float((first.argmax(axis=1) == second.argmax(axis=1)).mean())


def same_state(actual: LearnerState, expected: LearnerState, complaint: str) -> None:
    names = actual.tensors.keys() | expected.tensors.keys()
    missing = actual.tensors.keys() ^ expected.tensors.keys()
    other = missing or {name for name in names if not _equal(actual.tensors[name], expected.tensors[name])}
    other |= {
        name
        for name in actual.values | expected.values
        if json.dumps(actual.values.get(name)) != json.dumps(expected.values.get(name))
    }
    if other:
        raise Broken(f"{complaint}: {sorted(other)[0]}.")


def _equal(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Whether two tensors are equal, with NaN in the same places."""
    a, b = first.numpy(), second.numpy()
    return a.shape == b.shape and np.array_equal(a, b, equal_nan=first.is_floating_point())


def arrays(session: Any) -> dict[str, np.ndarray]:
    """Copy all arrays of a session and of its graph."""
    copies = {name: value.copy() for name, value in vars(session).items() if isinstance(value, np.ndarray)}
    visible = session.visible_graph
    copies |= {"visible_graph.nodes": visible.nodes.copy(), "visible_graph.adjacency": visible.adjacency.data.copy()}
    features = visible.features if isinstance(visible.features, np.ndarray) else visible.features.data
    return {**copies, "visible_graph.features": features.copy()}
