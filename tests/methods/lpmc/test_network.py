"""The loss of an episode against a plain loop, and the episodes themselves."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from graphfcl.methods.lpmc.learner import LpmcNetwork, LpmcSettings, PartialSampler, without_classes
from graphfcl.methods.lpmc.micro_clusters import MicroClusters
from graphfcl.methods.shared.episodes import Episode, NodePools, PseudoIncrementalSampler
from graphfcl.methods.shared.validation_sessions import KnownClasses
from graphfcl.nn import GcnEncoder, GraphInputs
from tests.golden.samples import golden_stream

pytestmark = pytest.mark.usefixtures("double_precision")
CPU = torch.device("cpu")
BASE = golden_stream("transductive").base


def network_of(**changes: float) -> LpmcNetwork:
    encoder = GcnEncoder(
        BASE.visible_graph.loaded().features.shape[1], 8, 6, torch.Generator().manual_seed(0), last_relu=False
    )
    return LpmcNetwork(encoder, replace(LpmcSettings(), min_points=3, **changes))  # type: ignore[arg-type]


def session_episode() -> Episode:
    """As a session sees it: four classes with train nodes, three known by supports, the last one new."""
    pools = NodePools(BASE.train, BASE.train_labels, len(BASE.classes))
    few = pools.draw(np.array([4, 5, 6]), np.full(3, 4), np.random.default_rng(1))
    many = BASE.train_labels < 4
    known = KnownClasses(
        train=(BASE.train[many], BASE.train_labels[many]),
        supports=(few.ravel(), np.repeat([4, 5, 6], 4)),
        tasks=[[6]],
        base_count=4,
        many=4,
        class_count=7,
        way=1,
    )
    return known.sample(8, 3, np.random.default_rng(2))


def plain_class_vector(points: list[np.ndarray], numbers: list[int]) -> np.ndarray:
    total = np.zeros(len(points[0]))
    for number in set(numbers):
        centre = np.mean([point for point, m in zip(points, numbers, strict=True) if m == number], axis=0)
        total += numbers.count(number) / len(points) * centre / np.linalg.norm(centre)
    return total


def test_the_loss_of_a_session_against_a_loop() -> None:
    network, episode = network_of(distillation=0.7), session_episode()
    inputs = GraphInputs(BASE.visible_graph.loaded(), CPU)
    before = network.node_embeddings(inputs)
    with torch.no_grad():
        weight = dict(network.encoder.named_parameters())["second.weight"]
        weight.add_(0.3 * torch.randn(8, 6, generator=torch.Generator().manual_seed(5)))
    found = network.episode_loss(inputs, episode, None, by_class=True, before=before).detach()
    alone = network.episode_loss(inputs, episode, None, by_class=True).detach()

    vectors = network.node_embeddings(inputs).values.numpy()
    rows = {int(node): row for row, node in enumerate(BASE.visible_graph.nodes)}
    supports = [vectors[rows[int(node)]] for node in episode.supports]
    classes = episode.support_classes.tolist()
    members = MicroClusters.of(
        torch.from_numpy(np.array(supports)), torch.from_numpy(episode.support_classes), 0.5, 3
    ).members.tolist()
    losses: dict[int, list[float]] = {}
    for node, label, own in zip(episode.queries, episode.query_classes, episode.own, strict=True):
        query = vectors[rows[int(node)]]
        logits = []
        for c in range(7):
            inside = [i for i, k in enumerate(classes) if k == c and i != own]
            vector = plain_class_vector([supports[i] for i in inside], [members[i] for i in inside])
            logits.append(float(query @ vector / np.linalg.norm(query)) / 0.07 - 1)
        losses.setdefault(int(label), []).append(math.log(sum(map(math.exp, logits))) - logits[label])
    expected = sum(sum(each) / len(each) for each in losses.values()) / len(losses)

    old = before.values.numpy()
    cosines = []
    for c in range(6):  # class 6 is new
        inside = [rows[int(node)] for node, k in zip(episode.supports, classes, strict=True) if k == c]
        then, now = old[inside].mean(axis=0), vectors[inside].mean(axis=0)
        cosines.append(float(then @ now / np.linalg.norm(then) / np.linalg.norm(now)))
    turned = 1 - sum(cosines) / 6
    assert (episode.own >= 0).any()
    assert turned > 1e-3
    assert math.isclose(float(found), expected + 0.7 * turned, rel_tol=1e-9)
    assert math.isclose(float(alone), expected, rel_tol=1e-9)


def test_class_vectors_do_not_depend_on_the_order_of_labels() -> None:
    network = network_of()
    embedding = network.node_embeddings(GraphInputs(BASE.visible_graph.loaded(), CPU))
    nothing = (BASE.train[:0], BASE.train_labels[:0])
    found = network.prototypes(embedding, (BASE.train, BASE.train_labels), nothing, 7)
    turned = network.prototypes(embedding, nothing, (BASE.train[::-1].copy(), BASE.train_labels[::-1].copy()), 7)
    assert torch.equal(found, turned)


def sampler_of(share: float) -> PartialSampler:
    return PartialSampler.of(BASE, np.array([4, 5, 6]), 5, 3, share)


def test_an_episode_leaves_out_base_classes() -> None:
    sampler, random = sampler_of(0.5), np.random.default_rng(0)
    labels = dict(zip(BASE.train.tolist(), BASE.train_labels.tolist(), strict=True))
    kept = set()
    for _ in range(20):
        episode = sampler.sample(random)
        assert episode.base_count == 2
        column: dict[int, int] = {}
        for nodes, classes in (
            (episode.supports, episode.support_classes),
            (episode.queries, episode.query_classes),
        ):
            for node, place in zip(nodes.tolist(), classes.tolist(), strict=True):
                assert column.setdefault(place, labels[node]) == labels[node], "a place is one class"
        assert sorted(column) == list(range(episode.class_count))
        assert len(set(column.values())) == episode.class_count
        assert all((column[place] < 4) == (place < 2) for place in column)
        current = episode.tasks[-1]
        assert column[int(current[0])] == sampler.known[-1]
        kept |= {c for c in column.values() if c < 4}
    assert kept == {0, 1, 2, 3}
    whole = PseudoIncrementalSampler.of(BASE, np.array([4, 5, 6]), 5, 3)
    again = without_classes(whole.sample(random), np.zeros(0, dtype=np.int64))
    assert again.base_count == 4


def test_one_base_class_stays_and_a_place_in_the_row_is_saved() -> None:
    samplers = [sampler_of(share) for share in (0.01, 1.0)]
    assert [each.sample(np.random.default_rng(0)).base_count for each in samplers] == [1, 4]
    other = sampler_of(1.0)
    other.load(samplers[1].values())
    first, second = (each.sample(np.random.default_rng(3)) for each in (samplers[1], other))
    assert first.supports.tolist() == second.supports.tolist()
