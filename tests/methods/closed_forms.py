"""A small stream for tests of closed forms, and what they compute it from, by plain loops."""

from typing import Any

import numpy as np
import torch

from graphfcl import BaseSession, Protocol, Stream, find_method, load_dataset, make_stream
from graphfcl.methods.bases.closed_form_learner import ClosedFormLearner
from graphfcl.methods.shared.class_statistics import counts_with, in_parts

GRAPH = "synthetic:nodes=400,edges=1600,classes=9,features=80,signal=0.7,skew=0.5"
QUICK: dict[str, dict[str, Any]] = {
    "ranpac": {"rank": 16, "width": 40},
    "teen": {"rank": 24},
    "fecam": {"rank": 6},
}
ENCODER: dict[str, Any] = {"features": "encoder", "pretraining.epochs": 8}


def stream_of(**changes: Any) -> Stream:
    return make_stream(load_dataset(GRAPH)[0], Protocol(base=3, pseudo_novel=3, way=1, shot=4), seed=0, **changes)


def fitted(name: str, base: BaseSession, **changes: Any) -> Any:
    learner = find_method(name).make({**QUICK[name], **changes}, seed=0)
    assert isinstance(learner, ClosedFormLearner)
    learner.fit(base)
    return learner


def plus(statistics: Any, points: torch.Tensor, labels: torch.Tensor, count: int) -> Any:
    """Statistics with more labelled points, of ``count`` classes in all."""
    return statistics.plus(in_parts(points, labels), counts_with(statistics.counts, labels, count))


def walked(name: str, stream: Stream, **changes: Any) -> Any:
    """After session 1 and 2."""
    learner = fitted(name, stream.base, **changes)
    for number in (1, 2):
        learner.learn(stream.session(number))
    return learner


def labelled_vectors(learner: Any, stream: Stream) -> tuple[np.ndarray, np.ndarray]:
    """z of all nodes labelled up to session 2, each as the graph of its session shows it, and their columns."""
    lessons = [(stream.base.visible_graph, stream.base.train, stream.base.train_labels)]
    for session in (stream.session(1), stream.session(2)):
        lessons.append((session.visible_graph, session.supports, session.support_labels))
    vectors = [vectors_of(learner, visible)[visible.rows(nodes)] for visible, nodes, _ in lessons]
    return np.concatenate(vectors), np.concatenate([columns for *_, columns in lessons])


def vectors_of(learner: Any, visible: Any) -> np.ndarray:
    """z of every node of a graph: the two blocks, weighed and of unit length together."""
    blocks = learner.embeddings(visible).astype(float)
    weight, half = learner.settings.hop_weight, blocks.shape[1] // 2
    weighed = np.concatenate([blocks[:, :half], weight * blocks[:, half:]], axis=1)
    return weighed / np.sqrt(1 + weight**2)


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / max(np.linalg.norm(vector), 1e-12)
