"""Prototypes of a session, against plain loops."""

import numpy as np
import torch

from graphfcl.methods.tap.learner import assigned, drift, neighbourhood, refined
from tests.methods.tap.test_topologies import random_graph


def test_the_neighbourhood_is_what_a_search_from_each_support_finds() -> None:
    adjacency = random_graph(80, 70, 0)
    rows = np.array([3, 40, 41])
    dense = adjacency.toarray() > 0
    for hops in range(5):
        reached: set[int] = set()
        for row in rows:
            near = {int(row)}
            for _ in range(hops):
                near |= {int(j) for i in near for j in np.flatnonzero(dense[i])}
            reached |= near
        assert set(neighbourhood(adjacency, rows, hops).tolist()) == reached - set(rows.tolist())


def test_old_prototypes_move_as_the_supports_near_them_did() -> None:
    random = np.random.default_rng(0)
    prototypes, before, after = (random.normal(size=shape) for shape in ((4, 3), (6, 3), (6, 3)))
    expected = np.zeros((4, 3))
    for c in range(4):
        weights = [np.exp(-np.sum((before[i] - prototypes[c]) ** 2) / (2 * 1.3**2)) for i in range(6)]
        expected[c] = sum(w * (after[i] - before[i]) for i, w in enumerate(weights)) / sum(weights)
    found = drift(torch.from_numpy(prototypes), torch.from_numpy(before), torch.from_numpy(after), 1.3)
    np.testing.assert_allclose(found.numpy(), expected)


def test_a_prototype_far_from_all_supports_stays() -> None:
    before = torch.zeros(2, 3)
    found = drift(torch.full((1, 3), 50.0), before, before + 1, 1.0)
    torch.testing.assert_close(found, torch.zeros(1, 3))


def test_new_prototypes_take_in_the_nodes_assigned_to_them() -> None:
    """Class 2 has three supports and class 3 has one: each is divided by its own number, whatever N is."""
    random = np.random.default_rng(1)
    prototypes, values, supports = (random.normal(size=shape) for shape in ((4, 3), (25, 3), (4, 3)))
    labels = np.array([2, 3, 2, 2])
    sums, masses = np.zeros((4, 3)), np.zeros(4)
    for u in range(25):
        cosines = [values[u] @ p / np.linalg.norm(values[u]) / np.linalg.norm(p) for p in prototypes]
        shares = np.exp(np.array(cosines) / 0.1) / np.exp(np.array(cosines) / 0.1).sum()
        best = int(shares.argmax())
        sums[best] += shares[best] * values[u]
        masses[best] += shares[best]
    assert (masses > 0).all()
    expected = prototypes.copy()
    for c, count in ((2, 3), (3, 1)):
        mean = (sums[c] + supports[labels == c].sum(axis=0)) / (masses[c] + count)
        expected[c] = 0.7 * mean + 0.3 * prototypes[c]
    members = assigned(torch.from_numpy(prototypes), torch.from_numpy(values), 0.1)
    found = refined(torch.from_numpy(prototypes), members, torch.from_numpy(supports), torch.from_numpy(labels), 0.7)
    np.testing.assert_allclose(found.numpy(), expected)


def test_without_nodes_around_a_new_prototype_is_the_mean_of_its_supports() -> None:
    random = torch.Generator().manual_seed(0)
    supports, labels = torch.randn(5, 3, generator=random), torch.tensor([1, 1, 1, 1, 1])
    prototypes = torch.stack([torch.ones(3), supports.mean(dim=0)])
    members = assigned(prototypes, torch.zeros(0, 3), 0.1)
    torch.testing.assert_close(refined(prototypes, members, supports, labels, 0.7), prototypes)
