"""What every training loop needs so that it can stop anywhere and go on as if it had not."""

import json
import math
from collections.abc import Iterable
from inspect import unwrap
from typing import Any

import numpy as np
import torch
from torch import nn

from graphfcl.errors import DivergenceError


class Adam(torch.optim.Adam):
    """Adam as torch has it."""

    add_param_group = unwrap(torch.optim.Adam.add_param_group)
    zero_grad = unwrap(torch.optim.Adam.zero_grad)
    state_dict = unwrap(torch.optim.Adam.state_dict)
    load_state_dict = unwrap(torch.optim.Adam.load_state_dict)
    step = torch.no_grad()(unwrap(torch.optim.Adam.step))


class LBFGS(torch.optim.LBFGS):
    """L-BFGS as torch has it."""

    add_param_group = unwrap(torch.optim.LBFGS.add_param_group)
    zero_grad = unwrap(torch.optim.LBFGS.zero_grad)
    step = torch.no_grad()(unwrap(torch.optim.LBFGS.step))


def make_adam(parameters: Iterable[nn.Parameter], rate: float, weight_decay: float) -> torch.optim.Adam:
    """Adam with the paper's betas; fused, because launches are what a small step costs, and on a GPU to be recorded."""
    trained = list(parameters)
    recorded = any(parameter.is_cuda for parameter in trained)
    return Adam(trained, lr=rate, betas=(0.9, 0.999), weight_decay=weight_decay, fused=True, capturable=recorded)


def adam_tensors(adam: torch.optim.Adam, prefix: str) -> dict[str, torch.Tensor]:
    """The state of the optimiser as plain tensors."""
    return {
        f"{prefix}.{number}.{name}": value.detach().cpu().clone()
        for number, state in adam.state_dict()["state"].items()
        for name, value in state.items()
    }


def load_adam(adam: torch.optim.Adam, tensors: dict[str, torch.Tensor], prefix: str) -> None:
    """The reverse of :func:`adam_tensors`."""
    state: dict[int, dict[str, torch.Tensor]] = {}
    for key, value in tensors.items():
        if key.startswith(f"{prefix}."):
            number, name = key.removeprefix(f"{prefix}.").split(".")
            state.setdefault(int(number), {})[name] = value.clone()
    adam.load_state_dict({"state": state, "param_groups": adam.state_dict()["param_groups"]})


def copy_weights(module: nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in module.state_dict().items()}


def with_prefix(prefix: str, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {f"{prefix}.{name}": value.detach().cpu().clone() for name, value in tensors.items()}


def without_prefix(prefix: str, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    start = f"{prefix}."
    return {name.removeprefix(start): value for name, value in tensors.items() if name.startswith(start)}


def generator_state(random: np.random.Generator) -> str:
    """The state of a numpy generator as JSON text (its numbers are too long for JSON readers of other languages)."""
    return json.dumps(random.bit_generator.state)


def generator_from(state: str) -> np.random.Generator:
    random = np.random.default_rng()
    random.bit_generator.state = json.loads(state)
    return random


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
        self.weights: dict[str, torch.Tensor] = {}

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

    def values(self) -> dict[str, Any]:
        score = self.score if math.isfinite(self.score) else None
        return {"score": score, "step": self.step, "stale": self.stale, "recent": self.recent}

    def load(self, values: dict[str, Any], weights: dict[str, torch.Tensor]) -> None:
        score = values["score"]
        self.score = -math.inf if score is None else score
        self.step, self.stale, self.weights = values["step"], values["stale"], weights
        self.recent = list(values["recent"])


def check_finite(loss: torch.Tensor, stage: str, step: int) -> float:
    """The loss as a number; an error if it is none."""
    value = float(loss.detach())
    if not math.isfinite(value):
        raise DivergenceError(
            f"{stage} diverged at step {step} (the loss is {value}): try a smaller learning rate, or look for extreme "
            "values among the features."
        )
    return value
