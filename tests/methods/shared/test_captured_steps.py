"""Episodes on a device, and steps that a GPU replays: the same numbers as those taken launch by launch."""

import numpy as np
import pytest
import torch

from graphfcl import HagMeta, HagMetaSettings, Stream, load_dataset, make_stream
from graphfcl.methods.shared import training_state
from graphfcl.methods.shared.episodes import DeviceEpisode, Sampler
from graphfcl.nn import GraphInputs

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="recorded steps need a GPU")


@pytest.fixture(scope="module")
def stream() -> Stream:
    graph, protocol = load_dataset("synthetic:nodes=600,edges=2400,classes=12,features=60")
    return make_stream(graph, protocol)


def prepared(stream: Stream, device: str) -> tuple[HagMeta, Sampler, GraphInputs]:
    learner = HagMeta(HagMetaSettings(hidden=32, size=16), seed=0, device=device)
    inputs = GraphInputs(stream.base.visible_graph.loaded(), learner.device)
    learner._start(stream.base, inputs)
    return learner, learner._sampler(stream.base, np.arange(learner.sizes.base, learner.sizes.many)), inputs


def test_an_episode_on_a_device_has_the_same_numbers(stream: Stream) -> None:
    learner, sampler, inputs = prepared(stream, "cpu")
    shapes = set()
    for _ in range(5):
        episode = sampler.sample(learner.random)
        found = DeviceEpisode.of(episode, inputs)
        shapes.add(found.signature)
        nodes = np.concatenate([episode.supports, episode.queries])
        assert found.device_rows.tolist() == inputs.visible.rows(nodes).tolist()
        for name in ("support_classes", "query_classes", "own", "tasks", "task_of_class"):
            assert getattr(found, name).tolist() == getattr(episode, name).tolist(), name
        other = found.over(found.numbers + 1)
        assert other.signature == found.signature
        assert other.tasks.tolist() == (episode.tasks + 1).tolist()
        assert not found.leaves_out
    assert learner._captured_steps(inputs, learner.meta.new_optimiser(0.1)) is None  # a CPU records nothing


@needs_gpu
def test_recorded_steps_are_those_taken_launch_by_launch(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for before in (1, 10**9):
        monkeypatch.setattr(training_state, "WARM_UP", before)
        learner, sampler, inputs = prepared(stream, "cuda")
        loss = 0.0
        while learner.meta.episode < 60:
            loss = learner.meta._train(sampler, inputs, 60, "meta-training")
        captured = learner.meta._captured
        assert captured is not None
        assert bool(captured._recorded) == (before == 1)
        weights = {name: value.cpu() for name, value in learner.network.state_dict().items()}
        found.append((loss, weights, learner.generator.get_state()))
    (one, first, drawn), (other, second, drawn_too) = found
    assert one == pytest.approx(other, rel=1e-4)
    assert torch.equal(drawn, drawn_too)  # dropout drew the same numbers
    for name, value in first.items():
        torch.testing.assert_close(value, second[name], rtol=1e-3, atol=1e-4)
