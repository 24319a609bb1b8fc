"""Micro-clusters against plain loops, and the traps of the released clustering."""

import math

import numpy as np
import pytest
import torch
from sklearn.cluster import DBSCAN

from graphfcl.methods.lpmc.micro_clusters import MicroClusters, dbscan

EPS, MIN_POINTS = 0.5, 5


def some_vectors(seed: int = 0, count: int = 60, classes: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    """Points around a few directions, some far from all, of classes in no order."""
    random = np.random.default_rng(seed)
    directions = random.normal(size=(3 * classes, 6))
    labels = random.integers(0, classes, count)
    places = directions[3 * labels + random.integers(0, 3, count)]
    vectors = places + 0.55 * random.normal(size=places.shape)
    return torch.from_numpy(vectors), torch.from_numpy(labels)


def cosine(first: np.ndarray, second: np.ndarray) -> float:
    return float(first @ second / (np.linalg.norm(first) * np.linalg.norm(second)))


def plain_dbscan(points: list[np.ndarray]) -> list[int]:
    """The textbook, a point at a time; a border point goes to its nearest core point."""
    near = [[j for j, other in enumerate(points) if cosine(point, other) >= 1 - EPS] for point in points]
    core = [len(found) >= MIN_POINTS for found in near]
    labels = [-1] * len(points)
    number = 0
    for start in range(len(points)):
        if not core[start] or labels[start] >= 0:
            continue
        reached = [start]
        while reached:
            member = reached.pop()
            if labels[member] < 0:
                labels[member] = number
                reached += [j for j in near[member] if core[j] and labels[j] < 0]
        number += 1
    for i, point in enumerate(points):
        cores = [j for j in near[i] if core[j]]
        if not core[i] and cores:
            labels[i] = labels[max(cores, key=lambda j: cosine(point, points[j]))]
    for i in range(len(points)):
        if labels[i] < 0:
            labels[i] = number
            number += 1
    return labels


def sets_of(labels: list[int] | np.ndarray) -> set[frozenset[int]]:
    """A clustering without its numbers."""
    return {frozenset(np.flatnonzero(np.asarray(labels) == number).tolist()) for number in set(np.asarray(labels))}


@pytest.mark.parametrize("seed", range(5))
def test_dbscan_is_that_of_a_plain_loop_in_each_class(seed: int) -> None:
    vectors, classes = some_vectors(seed)
    found = dbscan(vectors, classes, EPS, MIN_POINTS).numpy()
    for number in range(4):
        here = np.flatnonzero(classes.numpy() == number)
        assert sets_of(found[here]) == sets_of(plain_dbscan(list(vectors.numpy()[here])))
    assert set(found) == set(range(len(set(found)))), "numbers without a gap"
    assert all(len(set(classes.numpy()[found == number])) == 1 for number in set(found)), "a cluster has one class"
    sizes = np.bincount(found)
    assert (sizes == 1).any()
    assert (sizes > MIN_POINTS).any()


def test_noise_is_that_of_scikit_learn() -> None:
    vectors = torch.from_numpy(np.random.default_rng(0).normal(size=(40, 10)))
    found = dbscan(vectors, torch.zeros(40, dtype=torch.int64), EPS, MIN_POINTS).numpy()
    expected = DBSCAN(eps=EPS, min_samples=MIN_POINTS, metric="cosine").fit(vectors.numpy())
    noise = expected.labels_ < 0
    assert noise.any()
    assert not noise.all()
    assert (np.bincount(found)[found[noise]] == 1).all()
    core = expected.core_sample_indices_
    assert sets_of(found[core]) == sets_of(expected.labels_[core])


def test_noise_points_are_singletons_and_nothing_else() -> None:
    """The released loop makes them singletons and, once more, one joint cluster."""
    found = MicroClusters.of(torch.eye(6), torch.zeros(6, dtype=torch.int64), EPS, MIN_POINTS)
    assert found.counts.tolist() == [1] * 6
    assert sorted(found.members.tolist()) == list(range(6))
    assert int(found.counts.sum()) == 6


def test_new_noise_takes_fresh_numbers() -> None:
    """In the released code id −1 becomes the newest cluster's id and overwrites it."""
    cluster, noise = torch.tensor([[1.0, 0.01 * i, 0.0] for i in range(6)]), torch.tensor([[0.0, 0.0, 1.0]])
    classes = torch.zeros(7, dtype=torch.int64)
    found = MicroClusters.of(torch.cat([cluster, noise]), classes, EPS, MIN_POINTS, chunk=6)
    assert found.members.tolist() == [0] * 6 + [1]
    assert found.counts.tolist() == [6, 1]
    torch.testing.assert_close(found.sums, torch.stack([cluster.sum(0), noise[0]]))


def test_zero_vectors_and_no_vectors_are_clusters_too() -> None:
    found = MicroClusters.of(torch.zeros(3, 2), torch.tensor([0, 0, 1]), EPS, MIN_POINTS)
    assert found.counts.tolist() == [1, 1, 1]
    assert not found.class_vectors(3).any()
    nothing = MicroClusters.of(torch.zeros(0, 2), torch.zeros(0, dtype=torch.int64), EPS, MIN_POINTS)
    assert nothing.class_vectors(2).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_the_collapsed_vector_gives_the_score_of_the_sum_over_micro_clusters() -> None:
    vectors, classes = some_vectors(1)
    asked, temperature = some_vectors(2)[0], 0.07
    found = MicroClusters.of(vectors, classes, EPS, MIN_POINTS)
    collapsed = asked / asked.norm(dim=1, keepdim=True) @ found.class_vectors(4).T / temperature - 1
    members = found.members.numpy()
    for q, query in enumerate(asked.numpy()):
        for c in range(4):
            inside = np.flatnonzero(classes.numpy() == c)
            score = 0.0
            for number in set(members[inside]):
                centre = vectors.numpy()[members == number].mean(axis=0)
                share = (members == number).sum() / inside.size
                score -= share * (1 - cosine(query, centre) / temperature)
            assert math.isclose(float(collapsed[q, c]), score, rel_tol=1e-12, abs_tol=1e-10)


def plain_chunks(points: list[np.ndarray], chunk: int) -> list[int]:
    """One class, chunk by chunk: join the nearest cluster if it is within its radius, else DBSCAN."""
    members: list[int] = []
    for start in range(0, len(points), chunk):
        numbers = sorted(set(members))
        spheres = []
        for number in numbers:
            inside = np.array([points[i] for i, m in enumerate(members) if m == number])
            variance = (inside**2).mean(axis=0) - inside.mean(axis=0) ** 2
            radius = np.sqrt(np.maximum(variance, 1e-5)).mean() if len(inside) > 1 else 1e-5
            spheres.append((number, inside.mean(axis=0), radius))
        here, rest = points[start : start + chunk], []
        found: list[int] = []
        for place, point in enumerate(here):
            distances = [float(np.linalg.norm(point - centre)) for _, centre, _ in spheres]
            nearest = int(np.argmin(distances)) if distances else -1
            joins = nearest >= 0 and distances[nearest] <= spheres[nearest][2]
            found.append(spheres[nearest][0] if joins else -1)
            if not joins:
                rest.append(place)
        for place, label in zip(rest, plain_dbscan([here[place] for place in rest]), strict=True):
            found[place] = len(numbers) + label
        members += found
    return members


def test_later_chunks_join_clusters_or_found_new_ones_as_in_a_plain_loop() -> None:
    random = np.random.default_rng(3)
    # Two dimensions, in which the radius (a mean over dimensions) reaches some of the points.
    vectors = np.array([[1.0, 0.2], [-0.5, 1.0]])[random.integers(0, 2, 90)] + 0.2 * random.normal(size=(90, 2))
    far = np.array([5.0, 5.0])
    vectors[70] = far
    both, classes = torch.from_numpy(np.concatenate([vectors, vectors[::-1]])), torch.arange(2).repeat_interleave(90)
    order = torch.from_numpy(random.permutation(180))
    order = order[torch.argsort(order % 90 + 90 * (classes[order] == 1))]  # classes mixed, each in its own order
    members = torch.empty(180, dtype=torch.int64)
    found = MicroClusters.of(both[order], classes[order], EPS, MIN_POINTS, chunk=20)
    members[order] = found.members
    for number, points in enumerate((vectors, vectors[::-1])):
        here = members[classes == number].numpy()
        expected = plain_chunks(list(points), 20)
        assert sets_of(here) == sets_of(expected)
    alone = plain_chunks(list(vectors), 20)
    assert any(alone.index(number) // 20 < (90 - 1 - alone[::-1].index(number)) // 20 for number in set(alone)), "joins"


def test_a_vector_is_left_out_of_its_cluster() -> None:
    vectors, classes = some_vectors(4)
    found = MicroClusters.of(vectors, classes, EPS, MIN_POINTS)
    left_out = torch.arange(0, 60, 3)
    without = found.vectors_without(left_out, vectors, found.class_vectors(4))
    members, points = found.members.numpy(), vectors.numpy()
    for row, i in enumerate(left_out.tolist()):
        inside = [j for j in range(60) if classes[j] == classes[i] and j != i]
        expected = np.zeros(6)
        for number in {members[j] for j in inside}:
            group = points[[j for j in inside if members[j] == number]]
            centre = group.mean(axis=0)
            expected += len(group) / len(inside) * centre / np.linalg.norm(centre)
        np.testing.assert_allclose(without[row].numpy(), expected, rtol=1e-9, atol=1e-12)


def test_class_vectors_pass_gradients_on() -> None:
    vectors, classes = some_vectors(5)
    vectors.requires_grad_(True)
    MicroClusters.of(vectors, classes, EPS, MIN_POINTS).class_vectors(4)[:, 0].sum().backward()
    assert vectors.grad is not None
    assert (vectors.grad.abs().sum(dim=1) > 0).all()
