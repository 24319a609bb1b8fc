"""What every training loop needs: optimisers, steps, early stopping, and a state from which it goes on."""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from inspect import unwrap
from typing import Any

import torch
from torch import nn

from graphfcl.errors import DivergenceError
from graphfcl.methods.learner import Tensors
from graphfcl.methods.shared.episodes import DeviceEpisode
from graphfcl.nn import GraphInputs

BEFORE = 2  # steps of a shape that are taken before one is recorded
MOST = 64  # shapes that are recorded

DeviceLoss = Callable[[GraphInputs, DeviceEpisode], torch.Tensor]

# Every optimiser of torch imports ``torch._dynamo`` when it is made, which takes as long as the import of torch itself
# and only ``torch.compile`` needs, which nothing here uses. Here the same methods stand without the wrappers that do
# so: what they compute is torch's own code.


class Adam(torch.optim.Adam):
    """Adam as torch has it."""

    add_param_group = unwrap(torch.optim.Adam.add_param_group)
    zero_grad = unwrap(torch.optim.Adam.zero_grad)
    state_dict = unwrap(torch.optim.Adam.state_dict)
    load_state_dict = unwrap(torch.optim.Adam.load_state_dict)
    step = torch.no_grad()(unwrap(torch.optim.Adam.step))

    @property
    def saved_state(self) -> Tensors:
        """Its moments, by the number of the parameter and their name."""
        states = self.state_dict()["state"].items()
        return {f"{number}.{name}": value for number, state in states for name, value in state.items()}

    @saved_state.setter
    def saved_state(self, tensors: Tensors) -> None:
        state: dict[int, Tensors] = {}
        for key, value in tensors.items():
            number, name = key.split(".")
            state.setdefault(int(number), {})[name] = value
        self.load_state_dict({"state": state, "param_groups": self.state_dict()["param_groups"]})


class LBFGS(torch.optim.LBFGS):
    """L-BFGS as torch has it."""

    add_param_group = unwrap(torch.optim.LBFGS.add_param_group)
    zero_grad = unwrap(torch.optim.LBFGS.zero_grad)
    step = torch.no_grad()(unwrap(torch.optim.LBFGS.step))


def make_adam(parameters: Iterable[nn.Parameter], rate: float, weight_decay: float) -> Adam:
    """Adam with the paper's betas; fused, because launches are what a small step costs, and on a GPU to be recorded."""
    trained = list(parameters)
    recorded = any(parameter.is_cuda for parameter in trained)
    return Adam(trained, lr=rate, betas=(0.9, 0.999), weight_decay=weight_decay, fused=True, capturable=recorded)


def take_step(optimiser: torch.optim.Optimizer, compute_loss: Callable[[], torch.Tensor]) -> torch.Tensor:
    """One step on a loss; the loss."""
    optimiser.zero_grad(set_to_none=True)
    loss = compute_loss()
    loss.backward()
    optimiser.step()
    return loss.detach()


def take_steps(
    optimiser: torch.optim.Optimizer, steps: int, compute_loss: Callable[[], torch.Tensor], stage: str = "fine-tuning"
) -> None:
    """Some steps, each on a loss that must be finite. stage: what a message calls them."""
    for number in range(steps):
        check_finite(take_step(optimiser, compute_loss), stage, number + 1)


def check_finite(loss: torch.Tensor, stage: str, step: int) -> float:
    """The loss as a number; an error if it is none."""
    value = float(loss.detach())
    if not math.isfinite(value):
        raise DivergenceError(
            f"{stage} diverged at step {step} (the loss is {value}): try a smaller learning rate, or look for extreme "
            "values among the features."
        )
    return value


def copy_weights(module: nn.Module) -> Tensors:
    return {name: value.detach().clone() for name, value in module.state_dict().items()}


def with_prefix(prefix: str, tensors: Tensors) -> Tensors:
    return {f"{prefix}.{name}": value.detach().cpu().clone() for name, value in tensors.items()}


def without_prefix(prefix: str, tensors: Tensors) -> Tensors:
    start = f"{prefix}."
    return {name.removeprefix(start): value for name, value in tensors.items() if name.startswith(start)}


class EarlyStopping:
    """Keeps the best weights, and says when ``patience`` checks in a row brought nothing better.

    A score counts as the mean of the last ``window`` ones: where single validations are noisy, the best of many is
    luck.
    """

    def __init__(self, patience: int, window: int = 1) -> None:
        self.patience, self.window = patience, window
        self.recent: list[float] = []
        self.score = -math.inf
        self.step = 0
        self.stale = 0
        self.weights: Tensors = {}

    def check(self, score: float, step: int, module: nn.Module) -> bool:
        """Note a score; true when it is time to stop."""
        self.recent = [*self.recent, score][-self.window :]
        smooth = sum(self.recent) / len(self.recent)
        if smooth > self.score:
            self.score, self.step, self.stale, self.weights = smooth, step, 0, copy_weights(module)
        else:
            self.stale += 1
        return self.exhausted

    @property
    def exhausted(self) -> bool:
        return self.stale >= self.patience

    @property
    def saved_state(self) -> dict[str, Any]:
        """All that it has noted; nothing before the first score."""
        noted = ("recent", "score", "step", "stale", "weights")
        return {name: getattr(self, name) for name in noted} if self.recent else {}

    @saved_state.setter
    def saved_state(self, noted: dict[str, Any]) -> None:
        vars(self).update(noted)


@dataclass(frozen=True, eq=False)
class _Recorded:
    """graph: the launches. numbers: where they read the episode. loss: where they leave its loss."""

    graph: torch.cuda.CUDAGraph
    numbers: torch.Tensor
    loss: torch.Tensor


class CapturedSteps:
    """Optimiser steps on a GPU that are recorded once and then replayed (CUDA graphs).

    An episode takes about 220 launches for a millisecond of work: the host is what it waits for. Episodes of one shape
    need the same launches in the same order, with other numbers in the same places. The first few of a shape are taken
    launch by launch; then one is recorded, and every later one is a copy of its numbers and one launch. The arithmetic
    is the same.

    loss: of a graph and an episode on its device. generator: what dropout is drawn from.
    """

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
        return take_step(self.optimiser, lambda: self.loss(inputs, episode))

    def _record(self, inputs: GraphInputs, episode: DeviceEpisode) -> _Recorded:
        numbers = episode.numbers.clone()
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self.generator)
        self.optimiser.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            loss = self._taken(inputs, episode.over(numbers))
        self.optimiser.zero_grad(set_to_none=True)  # these gradients are the recording's
        return _Recorded(graph, numbers, loss)
