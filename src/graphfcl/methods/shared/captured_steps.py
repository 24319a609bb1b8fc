"""Optimiser steps on a GPU that are recorded once and then replayed (CUDA graphs).

An episode takes about 220 launches for a millisecond of work: the host is what it waits for. Episodes of one shape need
the same launches in the same order, with other numbers in the same places. The first few of a shape are taken launch by
launch; then one is recorded, and every later one is a copy of its numbers and one launch. The arithmetic is the same.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import torch

from graphfcl.methods.shared.episodes import DeviceEpisode
from graphfcl.nn import GraphInputs

BEFORE = 2  # steps of a shape that are taken before one is recorded
MOST = 64  # shapes that are recorded

DeviceLoss = Callable[[GraphInputs, DeviceEpisode], torch.Tensor]


@dataclass(frozen=True, eq=False)
class _Recorded:
    """graph: the launches. numbers: where they read the episode. loss: where they leave its loss."""

    graph: torch.cuda.CUDAGraph
    numbers: torch.Tensor
    loss: torch.Tensor


class CapturedSteps:
    """Steps of one optimiser on one graph. generator: what dropout is drawn from."""

    def __init__(self, loss: DeviceLoss, optimiser: torch.optim.Adam, generator: torch.Generator) -> None:
        self.loss, self.optimiser, self.generator = loss, optimiser, generator
        self._seen: Counter[tuple[int, ...]] = Counter()
        self._recorded: dict[tuple[int, ...], _Recorded] = {}

    def step(self, inputs: GraphInputs, episode: DeviceEpisode) -> torch.Tensor:
        """One step; its loss, which the next step may overwrite."""
        shape = episode.signature
        recorded = self._recorded.get(shape)
        if recorded is None:
            self._seen[shape] += 1
            if self._seen[shape] <= BEFORE or len(self._recorded) >= MOST:
                return self._taken(inputs, episode)
            recorded = self._recorded[shape] = self._record(inputs, episode)
        recorded.numbers.copy_(episode.numbers)
        recorded.graph.replay()
        return recorded.loss

    def _taken(self, inputs: GraphInputs, episode: DeviceEpisode) -> torch.Tensor:
        self.optimiser.zero_grad(set_to_none=True)
        loss = self.loss(inputs, episode)
        loss.backward()
        self.optimiser.step()
        return loss.detach()

    def _record(self, inputs: GraphInputs, episode: DeviceEpisode) -> _Recorded:
        numbers = episode.numbers.clone()
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self.generator)
        self.optimiser.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            loss = self._taken(inputs, episode.over(numbers))
        self.optimiser.zero_grad(set_to_none=True)  # these gradients are the recording's
        return _Recorded(graph, numbers, loss)
