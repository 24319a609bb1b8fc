"""Optimisers without torch's compiler: the numbers of torch's own, bit for bit."""

from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy

from graphfcl.methods.shared.training_state import LBFGS, Adam
from tests.cli.command import run_python

ADAM = {"lr": 0.02, "weight_decay": 0.01, "fused": True}
TWINS: list[tuple[type[torch.optim.Optimizer], type[torch.optim.Optimizer], dict[str, Any]]] = [
    (Adam, torch.optim.Adam, ADAM),
    (LBFGS, torch.optim.LBFGS, {"max_iter": 4, "line_search_fn": "strong_wolfe"}),
]


def trained(kind: type[torch.optim.Optimizer], options: dict[str, Any], steps: int, stop: int = 0) -> torch.Tensor:
    """Weights after some steps, with another optimiser that takes over the state after ``stop`` of them."""
    start = torch.Generator().manual_seed(0)
    weights = torch.nn.Parameter(torch.randn(3, 5, generator=start))
    points, labels = torch.randn(20, 5, generator=start), torch.randint(0, 3, (20,), generator=start)
    optimiser = kind([weights], **options)

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        loss = cross_entropy(points @ weights.T, labels)
        loss.backward()
        return loss

    for number in range(steps):
        if stop and number == stop:
            before, optimiser = optimiser.state_dict(), kind([weights], **options)
            optimiser.load_state_dict(before)
        if kind.__name__ == "LBFGS":
            optimiser.step(closure)  # type: ignore[arg-type]
        else:
            closure()
            optimiser.step()
        assert torch.is_grad_enabled()
    return weights.detach()


@pytest.mark.parametrize(("ours", "plain", "options"), TWINS, ids=lambda value: getattr(value, "__name__", ""))
def test_the_numbers_are_those_of_torch(
    ours: type[torch.optim.Optimizer], plain: type[torch.optim.Optimizer], options: dict[str, Any]
) -> None:
    for steps, stop in ((1, 0), (6, 0), (6, 3)):
        assert torch.equal(trained(ours, options, steps, stop), trained(plain, options, steps, stop))


TRAINING = """
import sys, torch
from graphfcl.methods.shared.training_state import LBFGS, Adam
weights = torch.nn.Parameter(torch.ones(3))
adam, lbfgs = Adam([weights], fused=True), LBFGS([weights])
def closure():
    lbfgs.zero_grad()
    loss = (weights**2).sum()
    loss.backward()
    return loss
closure()
adam.step()
adam.load_state_dict(adam.state_dict())
lbfgs.step(closure)
assert "torch._dynamo" not in sys.modules, "it takes as long to import as torch itself"
"""


def test_the_compiler_is_not_imported() -> None:
    done = run_python("-c", TRAINING)
    assert done.code == 0, done.err
