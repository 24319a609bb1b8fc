"""The track ``isolated``: a session is learned on its own subgraph; where a node is asked about tells no session."""

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

from graphfcl import (
    NO_STORE,
    SILENT,
    BaseSession,
    EncoderStore,
    Evaluation,
    Learner,
    Progress,
    Session,
    VisibleGraph,
    VisibleNodes,
    evaluate,
    load_dataset,
    make_stream,
)

SYNTHETIC = "synthetic:nodes=2000,edges=5000,classes=20,features=50"


class ByComponent(Learner):
    """Picks a novel session by the connected component of a node in the graph it is asked about.

    A session is drawn from those with a support in the component, or from all if there is none. by_size: the session
    whose supports were learned in components of the nearest size.
    """

    def __init__(self, *, by_size: bool) -> None:
        super().__init__()
        self.by_size, self.random = by_size, np.random.default_rng(0)
        self.supports: list[np.ndarray] = []  # of each session
        self.sizes: list[float] = []  # of each session: nodes of the components of its supports, on average
        self.first: list[int] = []  # the first column of each session

    def fit(
        self,
        base: BaseSession,
        progress: Progress = SILENT,  # noqa: ARG002
        encoders: EncoderStore = NO_STORE,  # noqa: ARG002
    ) -> None:
        self.classes_ = base.classes

    def learn(self, session: Session) -> None:
        component = components(session.visible_graph.loaded())[session.visible_graph.rows(session.supports)]
        self.sizes.append(float(np.bincount(components(session.visible_graph.loaded()))[component].mean()))
        self.supports.append(session.supports)
        self.first.append(len(self.classes_))
        self.classes_ += session.new_classes

    def scores(self, visible: VisibleNodes, nodes: np.ndarray) -> np.ndarray:
        scores = np.zeros((nodes.size, len(self.classes_)))
        if not self.supports:
            return scores
        component = components(visible.loaded())
        of_node = component[visible.rows(nodes)]
        if self.by_size:
            votes = -np.abs(np.bincount(component)[of_node][:, None] - np.array(self.sizes))
        else:
            there = [np.isin(np.arange(component.max() + 1), component[visible.rows(s)]) for s in self.supports]
            votes = np.stack(there, axis=1)[of_node] + self.random.random((nodes.size, len(there)))
        scores[np.arange(nodes.size), np.array(self.first)[votes.argmax(axis=1)]] = 1
        return scores


def components(visible: VisibleGraph) -> np.ndarray:
    """(n,) the number of each node's connected component."""
    return connected_components(visible.adjacency, directed=False)[1]


def session_recalls(evaluation: Evaluation) -> tuple[np.ndarray, np.ndarray]:
    """Of each novel session, after the last one: the share of its test nodes for which it was picked, and how many."""
    sessions, confusion = evaluation.session_of_class, evaluation.confusions[-1]
    novel = np.arange(1, sessions.max() + 1)
    picked = np.array([confusion[np.ix_(sessions == t, sessions == t)].sum() for t in novel])
    counts = np.array([confusion[sessions == t].sum() for t in novel])
    return picked / counts, counts


@pytest.mark.parametrize("by_size", [False, True])
@pytest.mark.parametrize("name", ["debian", pytest.param("wordnet", marks=pytest.mark.long), SYNTHETIC])
def test_a_connected_component_tells_no_session(name: str, by_size: bool) -> None:
    """The mean recall of sessions is at most that of a session picked at random, plus three standard errors."""
    graph, protocol = load_dataset(name)
    stream = make_stream(graph, protocol, seed=0, track="isolated", sessions=4)
    recalls, counts = session_recalls(evaluate(ByComponent(by_size=by_size), stream))
    chance = 1 / len(stream)
    error = np.sqrt((chance * (1 - chance) / counts).sum()) / len(stream)
    assert recalls.mean() <= chance + 3 * error
