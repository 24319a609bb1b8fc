"""Building blocks of training loops: optimisers, steps, early stopping, and recorded GPU steps."""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from inspect import unwrap
from typing import Any

import torch
from torch import nn

from graphfcl.errors import DivergenceError
from graphfcl.methods.shared.episodes import DeviceEpisode
from graphfcl.methods.state import Tensors
from graphfcl.nn import GraphInputs

WARM_UP = 2  # steps per shape that run normally before one is recorded
MOST_RECORDED = 64  # maximum number of recorded shapes

DeviceLoss = Callable[[GraphInputs, DeviceEpisode], torch.Tensor]

# Every torch optimiser imports ``torch._dynamo`` when it is created, which takes as long as importing torch itself and
# is only needed by ``torch.compile``. The classes below use torch's own methods without the wrappers that import it.


class Adam(torch.optim.Adam):
    """Adam of torch without the import of ``torch._dynamo``."""

    add_param_group = unwrap(torch.optim.Adam.add_param_group)
    zero_grad = unwrap(torch.optim.Adam.zero_grad)
    state_dict = unwrap(torch.optim.Adam.state_dict)
    load_state_dict = unwrap(torch.optim.Adam.load_state_dict)
    step = torch.no_grad()(unwrap(torch.optim.Adam.step))

    @property
    def saved_state(self) -> Tensors:
        """The moments by number of the parameter and name."""
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
    """L-BFGS of torch without the import of ``torch._dynamo``."""

    add_param_group = unwrap(torch.optim.LBFGS.add_param_group)
    zero_grad = unwrap(torch.optim.LBFGS.zero_grad)
    step = torch.no_grad()(unwrap(torch.optim.LBFGS.step))


def make_adam(parameters: Iterable[nn.Parameter], rate: float, weight_decay: float) -> Adam:
    """Make Adam with the paper's betas. It is fused, since kernel launches dominate small steps, and recordable."""
    trained = list(parameters)
    recorded = any(parameter.is_cuda for parameter in trained)
    return Adam(trained, lr=rate, betas=(0.9, 0.999), weight_decay=weight_decay, fused=True, capturable=recorded)


def take_step(optimiser: torch.optim.Optimizer, compute_loss: Callable[[], torch.Tensor]) -> torch.Tensor:
    """Take an optimiser step and return its loss."""
    optimiser.zero_grad(set_to_none=True)
    loss = compute_loss()
    loss.backward()
    optimiser.step()
    return loss.detach()


def take_steps(
    optimiser: torch.optim.Optimizer, steps: int, compute_loss: Callable[[], torch.Tensor], stage: str = "fine-tuning"
) -> None:
    """Take optimiser steps with finite losses. ``stage`` names the steps in error messages."""
    for number in range(steps):
        check_finite(take_step(optimiser, compute_loss), stage, number + 1)


def check_finite(loss: torch.Tensor, stage: str, step: int) -> float:
    """Return the loss as a float; raise :class:`DivergenceError` if it is not finite."""
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
    """Early stopping: keeps the best weights, and stops after ``patience`` checks in a row without improvement.

    The score of a check is the mean of the latest ``window`` scores. Averaging avoids selecting a lucky score if single
    validations are noisy.
    """

    def __init__(self, patience: int, window: int = 1) -> None:
        self.patience, self.window = patience, window
        self.recent: list[float] = []
        self.score = -math.inf
        self.step = 0
        self.stale = 0
        self.weights: Tensors = {}

    def check(self, score: float, step: int, module: nn.Module) -> bool:
        """Record a score, and return whether to stop."""
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
        """The recorded values; empty before the first score."""
        noted = ("recent", "score", "step", "stale", "weights")
        return {name: getattr(self, name) for name in noted} if self.recent else {}

    @saved_state.setter
    def saved_state(self, noted: dict[str, Any]) -> None:
        vars(self).update(noted)


@dataclass(frozen=True, eq=False)
class _Recorded:
    """A recorded step: its launches, the tensor from which they read the episode, and the tensor of the loss."""

    graph: torch.cuda.CUDAGraph
    numbers: torch.Tensor
    loss: torch.Tensor


class CapturedSteps:
    """Optimiser steps on a GPU that are recorded once and then replayed (CUDA graphs).

    An episode takes about 220 kernel launches for a millisecond of work, so the host is the bottleneck. Episodes of one
    shape need the same launches in the same order with other numbers. The first steps of a shape run normally, and then
    one is recorded. Every later step copies its numbers and replays the recording. The arithmetic is the same.

    Args:
        loss: Computes the loss of a graph and an episode on its device.
        optimiser: The optimiser.
        generator: Random generator of dropout.
    """

    def __init__(self, loss: DeviceLoss, optimiser: torch.optim.Adam, generator: torch.Generator) -> None:
        self.loss, self.optimiser, self.generator = loss, optimiser, generator
        self._seen: Counter[tuple[int, ...]] = Counter()
        self._recorded: dict[tuple[int, ...], _Recorded] = {}

    def step(self, inputs: GraphInputs, episode: DeviceEpisode) -> torch.Tensor:
        """Take a step and return its loss, which the next step may overwrite."""
        shape = episode.signature
        recorded = self._recorded.get(shape)
        if recorded is None:
            self._seen[shape] += 1
            if self._seen[shape] <= WARM_UP or len(self._recorded) >= MOST_RECORDED:
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
        self.optimiser.zero_grad(set_to_none=True)  # these gradients belong to the recording
        return _Recorded(graph, numbers, loss)
