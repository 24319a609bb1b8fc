"""Small array operations that several floors need."""

import numpy as np


def rank_in_run(ordered: np.ndarray) -> np.ndarray:
    """(n,) 0, 1, 2, … within each run of equal values of a sorted array."""
    return np.arange(ordered.size) - np.searchsorted(ordered, ordered)
