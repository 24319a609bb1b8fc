"""The loss of session 0, against a plain version."""

import numpy as np
import pytest
import torch

from graphfcl import Stream
from graphfcl.methods import Labelled
from graphfcl.methods.shared.heads import CosineHead
from graphfcl.methods.shared.supervised_training import Places, SupervisedSettings
from graphfcl.methods.tap.learner import Tap
from graphfcl.methods.tap.training import ClassGroups, TapSettings, TopologyTraining, cosface, encode, inputs_of
from graphfcl.nn import GatEncoder, GraphInputs
from tests.golden.samples import golden_stream


def plain_cosface(values: np.ndarray, weights: np.ndarray, labels: np.ndarray) -> list[float]:
    """−log softmax(15 (cos − 0.1·1[y])) of each node; weights: (classes, h)."""
    losses = []
    for z, y in zip(values, labels, strict=True):
        logits = [15 * (z @ w / np.linalg.norm(z) / np.linalg.norm(w) - 0.1 * (c == y)) for c, w in enumerate(weights)]
        losses.append(float(np.log(np.exp(logits).sum()) - logits[y]))
    return losses


def test_cosface_is_what_the_paper_says() -> None:
    random = np.random.default_rng(0)
    values, weights, labels = random.normal(size=(7, 3)), random.normal(size=(4, 3)), random.integers(0, 4, 7)
    start = torch.Generator().manual_seed(0)
    head = CosineHead(3, 4, 15.0, start)
    head.weight.data = torch.from_numpy(weights.T.copy())
    found = cosface(15.0, 0.1)(head(torch.from_numpy(values)), torch.from_numpy(labels))
    np.testing.assert_allclose(found.detach().numpy(), plain_cosface(values, weights, labels))


def training_of(stream: Stream) -> tuple[TopologyTraining, GraphInputs, Labelled]:
    base = stream.base
    inputs = GraphInputs(base.visible_graph.loaded(), torch.device("cpu"))
    start = torch.Generator().manual_seed(0)
    encoder = GatEncoder(inputs.feature_count, 8, 6, start, dropout=0.0, last_relu=False)
    head = CosineHead(6, 3 * len(base.classes), 15.0, start)
    training = TopologyTraining(encoder, head, TapSettings(), way=2, stage="session 0", name="training")
    return training, inputs, (base.train, base.train_labels)


def test_each_topology_has_a_label_space_of_its_own() -> None:
    """L = 0.7 ℓ_a + 0.15 ℓ_b + 0.15 ℓ_c over 3C columns, every class counting the same."""
    training, inputs, (nodes, labels) = training_of(golden_stream("isolated"))
    rows, count = inputs.visible.rows(nodes), int(labels.max()) + 1
    drawn = ClassGroups(inputs.visible.adjacency, rows, labels, 2, 0.3).draw(np.random.default_rng(0))
    groups = inputs_of(drawn, inputs.device)
    training.inputs, training.group_graph = inputs, groups
    places = Places(torch.from_numpy(rows), torch.from_numpy(labels.copy()))
    found = training._loss(None, places, None)  # type: ignore[arg-type]

    encoder = training.encoder
    features = torch.from_numpy(np.asarray(inputs.visible.features.todense()))
    projected = features @ encoder.first.weight
    columns = training.head.weight.detach().numpy().T
    expected = 0.0
    for place, weight in enumerate((0.7, 0.15, 0.15)):
        if place == 0:
            values = encoder(encoder.rows(inputs, None))[rows]
        else:
            values = encode(encoder, projected[rows], groups if place == 1 else None)
        losses = np.array(plain_cosface(values.detach().numpy(), columns, labels + place * count))
        expected += weight * np.mean([losses[labels == c].mean() for c in range(count)])
    np.testing.assert_allclose(float(found.detach()), expected, rtol=1e-4)


def test_training_leaves_the_visible_graph_as_it_is() -> None:
    """Random edges and groups exist inside a training step, never in the graph that nodes are classified on."""
    stream = golden_stream("transductive")
    training, inputs, train = training_of(stream)
    before = [getattr(inputs.visible.adjacency, name).copy() for name in ("data", "indices", "indptr")]
    edges = inputs.all_gat_rows.hops[0][0].sources.clone()
    training.settings = SupervisedSettings(epochs=2, steps_per_epoch=2)
    training.run(train, (stream.base.validation, stream.base.validation_labels), inputs, Tap())
    after = [getattr(inputs.visible.adjacency, name) for name in ("data", "indices", "indptr")]
    for old, new in zip(before, after, strict=True):
        np.testing.assert_array_equal(old, new)
    assert torch.equal(inputs.all_gat_rows.hops[0][0].sources, edges)


def test_groups_are_drawn_again_every_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = golden_stream("isolated")
    training, inputs, train = training_of(stream)
    drawn = []
    original = ClassGroups.draw

    def noted(self: ClassGroups, random: np.random.Generator) -> object:
        drawn.append(original(self, random))
        return drawn[-1]

    monkeypatch.setattr(ClassGroups, "draw", noted)
    training.settings = SupervisedSettings(epochs=3, steps_per_epoch=1)
    training.run(train, (stream.base.validation, stream.base.validation_labels), inputs, Tap())
    assert len(drawn) == 3
    assert (drawn[0] != drawn[1]).nnz
    assert (drawn[1] != drawn[2]).nnz
