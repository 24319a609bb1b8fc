"""The cost of a meta-training episode (sampling, forward, backward, optimiser step) at the paper's widths.

1. ``amazon-clothing-20``: against a straightforward episode with dense features on the whole graph (all nodes that have
   an edge, whatever the session), as in the authors' public code: one encoder pass for supports and queries, a second
   one for the base prototypes, attention for all nodes, prototypes class by class.
2. Reddit-sized preset: against the episode's own products timed alone.
3. Reddit-sized preset: against one whole-graph forward and backward pass of the same encoder.

The ratios have bars on a CPU. A GPU computes the whole graph for an episode, so they say nothing there; its bars are
times.
"""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import nn

from benchmarks.timing import best_seconds, report
from graphfcl.datasets import load_dataset
from graphfcl.errors import InputError
from graphfcl.graph import Graph
from graphfcl.methods.hag_meta import HagMeta, HagMetaSettings
from graphfcl.methods.shared.episodes import DeviceEpisode, Episode
from graphfcl.methods.shared.training_state import WARM_UP
from graphfcl.nn import GcnEncoder, GraphInputs
from graphfcl.stream import Stream, make_stream


class Bench:
    """A learner at the start of meta-training, with GPIL at its fullest: all pseudo-novel classes known."""

    def __init__(self, stream: Stream, device: str) -> None:
        self.learner = HagMeta(HagMetaSettings(hidden=32, size=16), seed=0, device=device)
        self.base, self.view = stream.base, stream.view
        self.inputs = GraphInputs(self.base.visible_graph.loaded(), self.learner.device)
        self.learner._start(self.base, self.inputs)
        columns = np.arange(self.learner.sizes.base, self.learner.sizes.many)
        self.sampler = self.learner._sampler(self.base, columns)
        self.episode = self.sample()
        for _ in range(columns.size // self.base.way - 1):
            self.episode = self.sample()
        self.captured = self.learner._captured_steps(self.inputs, self.learner.meta.optimiser)

    def sample(self) -> Episode:
        return self.sampler.sample(self.learner.random)

    def synchronise(self) -> None:
        if self.learner.device.type == "cuda":
            torch.cuda.synchronize()

    def run_episode(self) -> None:
        """One of average size: the sampler goes through all sizes in turn."""
        if self.captured is None:
            self.learner.meta.step(self.inputs, self.sample(), self.learner.meta.optimiser)
        else:
            self.captured.step(self.inputs, DeviceEpisode.of(self.sample(), self.inputs))
        self.synchronise()

    def run_cycle(self) -> None:
        """As many episodes as it takes to learn all pseudo-novel classes once."""
        for _ in range(self.cycle):
            self.run_episode()

    @property
    def cycle(self) -> int:
        return max(1, len(self.base.pseudo_novel_classes) // self.base.way)

    def seconds(self) -> float:
        """Of an episode, once those that are recorded on a GPU are."""
        for _ in range(WARM_UP + 1):
            self.run_cycle()
        return best_seconds(self.run_cycle) / self.cycle


def dense_episode(bench: Bench, graph: Graph) -> Callable[[], None]:
    """The straightforward episode, on the learner's own weights and the 8,558 nodes of the graph that have an edge."""
    nodes = np.flatnonzero(np.diff(graph.adjacency.indptr) > 0)
    visible, learner = graph.visible(nodes, bench.view), bench.learner
    features = torch.from_numpy(visible.features.toarray())
    coo = visible.normalised.tocoo()
    places = torch.from_numpy(np.stack([coo.row, coo.col]).astype(np.int64))
    adjacency = torch.sparse_coo_tensor(places, torch.from_numpy(coo.data), visible.normalised.shape).coalesce()
    degrees = torch.from_numpy(np.log(visible.degrees + 1e-6))
    encoder: Any = learner.network.encoder
    nla: Any = learner.network.nla
    tla: Any = learner.network.tla
    optimiser = learner.meta.optimiser
    assert optimiser is not None

    def convolve(values: torch.Tensor, layer: Any) -> torch.Tensor:
        return torch.relu(torch.sparse.mm(adjacency, values @ layer.weight) + layer.bias)

    def encode() -> torch.Tensor:
        hidden = nn.functional.dropout(convolve(features, encoder.first), 0.5)
        return convolve(hidden, encoder.second)

    def run() -> None:
        episode = bench.sample()
        optimiser.zero_grad()
        values, base_values = encode(), encode()
        attention = convolve(convolve(features, nla.first), nla.second) @ nla.last.weight + nla.last.bias
        attention = torch.sigmoid(degrees * attention.squeeze(1))
        supports = np.searchsorted(nodes, episode.supports).clip(max=nodes.size - 1)
        prototypes = []
        for number in range(episode.class_count):
            rows = torch.from_numpy(supports[episode.support_classes == number])
            if number < episode.base_count:
                prototypes.append(base_values[rows].mean(dim=0))
            else:
                prototypes.append(torch.softmax(attention[rows], dim=0) @ values[rows])
        stacked = torch.stack(prototypes)
        queries = values[torch.from_numpy(np.searchsorted(nodes, episode.queries).clip(max=nodes.size - 1))]
        distances = ((queries[:, None] - stacked[None]) ** 2).sum(dim=2)
        weights = tla(stacked, torch.from_numpy(episode.tasks), episode.base_count, len(episode.tasks))
        task = torch.from_numpy(episode.task_of_class)
        class_weights = (weights / torch.bincount(task))[task]
        labels = torch.from_numpy(episode.query_classes)
        chosen = torch.log_softmax(-distances, dim=1)[torch.arange(labels.numel()), labels]
        (-((1 + class_weights[labels]) * chosen).mean()).backward()
        optimiser.step()

    return run


def products_alone(bench: Bench) -> Callable[[], None]:
    """Encoder and attention of one episode on rows that are ready: forward, backward, optimiser step."""
    learner, episode = bench.learner, bench.episode
    rows = bench.inputs.visible.rows(np.concatenate([episode.supports, episode.queries]))
    needed = bench.inputs.gcn_rows(rows, episode.few_shot)
    head = needed.head()
    encoder: Any = learner.network.encoder
    nla: Any = learner.network.nla
    optimiser = learner.meta.new_optimiser(0.0)

    def run() -> None:
        optimiser.zero_grad(set_to_none=True)
        (encoder(needed).sum() + nla(head).sum()).backward()
        optimiser.step()
        bench.synchronise()

    return run


def whole_graph_pass(bench: Bench) -> Callable[[], None]:
    """Z = ReLU(Â ReLU(Â X W₁) W₂) of all nodes and its gradients, features first multiplied and then propagated."""
    encoder = bench.learner.network.encoder
    assert isinstance(encoder, GcnEncoder)
    adjacency = bench.inputs.adjacency
    features = bench.base.visible_graph.loaded().features
    assert not sparse.issparse(features)
    values = torch.from_numpy(features).to(bench.learner.device)

    def run() -> None:
        hidden = torch.relu(adjacency @ (values @ encoder.first.weight) + encoder.first.bias)
        output = torch.relu(adjacency @ (hidden @ encoder.second.weight) + encoder.second.bias)
        output.sum().backward()
        bench.synchronise()

    return run


def main(device: str | None = None) -> None:
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    gpu = device == "cuda"
    graph, protocol = load_dataset("debian")
    ours = Bench(make_stream(graph, protocol), device).seconds()
    _report_at_most(f"episode on debian, {device}", 1e3 * ours, "ms", 3 if gpu else None)
    try:
        graph, protocol = load_dataset("amazon-clothing-20")
    except InputError as error:
        print(f"amazon-clothing-20 is left out: {error}")
    else:
        bench = Bench(make_stream(graph, protocol), device)
        ours = bench.seconds()
        report(f"episode on amazon-clothing-20, {device}", ours * 1e3, "ms", "-", True)
        if not gpu:
            theirs = best_seconds(dense_episode(bench, graph), repeats=5)
            report("dense whole-graph episode there", theirs * 1e3, "ms", "-", True)
            report("  dense episode / ours", theirs / ours, "x", ">= 25", theirs >= 25 * ours)
    graph, protocol = load_dataset("synthetic-reddit")
    bench = Bench(make_stream(graph, protocol), device)
    bench.run_cycle()
    ours = bench.seconds()
    _report_at_most(f"episode on synthetic-reddit, {device}", 1e3 * ours, "ms", 8 if gpu else None)
    # The last episode of a cycle is the largest: compare it with its own products.
    for _ in range(bench.cycle - 1):
        bench.run_episode()
    products = best_seconds(products_alone(bench))
    largest = best_seconds(lambda: one_of_size(bench))
    _report_at_most("  largest episode / its products alone", largest / products, "x", None if gpu else 1.5)
    whole = best_seconds(whole_graph_pass(bench), repeats=3)
    report("  whole-graph forward and backward", whole * 1e3, "ms", "-", True)
    _report_at_most("  episode / whole-graph pass", ours / whole, "x", None if gpu else 0.1)


def _report_at_most(name: str, value: float, unit: str, bar: float | None) -> None:
    report(name, value, unit, "-" if bar is None else f"<= {bar:g}", bar is None or value <= bar)


def one_of_size(bench: Bench) -> None:
    """The kept episode once more, planned, computed and stepped as any other; sampling is timed with it."""
    assert bench.learner.meta.optimiser is not None
    bench.sample()
    bench.learner.meta.step(bench.inputs, bench.episode, bench.learner.meta.optimiser)
    bench.synchronise()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
