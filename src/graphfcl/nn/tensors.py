"""Tensors of arrays that may be read-only, as all that a learner is handed is."""

import warnings

import numpy as np
import torch


def tensor_of(array: np.ndarray, device: torch.device | str = "cpu") -> torch.Tensor:
    """The array as a tensor, which shares its memory on a CPU: do not write into it."""
    if array.flags.writeable:
        return torch.from_numpy(array).to(device)
    with warnings.catch_warnings():
        # torch warns that such a tensor could be written to.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array).to(device)
