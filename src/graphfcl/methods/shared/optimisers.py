"""Torch's optimisers without the compiler that they bring along.

Every optimiser of torch imports ``torch._dynamo`` when it is made, which takes as long as the import of torch itself
and only ``torch.compile`` needs, which nothing here uses. Here the same methods stand without the wrappers that do so:
what they compute is torch's own code.
"""

from inspect import unwrap

import torch


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
