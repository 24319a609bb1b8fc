"""Small array operations that several floors need."""

from typing import Any

import numpy as np


def rank_in_run(ordered: np.ndarray) -> np.ndarray:
    """(n,) 0, 1, 2, … within each run of equal values of a sorted array."""
    return np.arange(ordered.size) - np.searchsorted(ordered, ordered)


def read_only(values: Any) -> Any:
    """The same array or CSR matrix; nobody can write into it any more."""
    parts = (values,) if isinstance(values, np.ndarray) else (values.indptr, values.indices, values.data)
    for part in parts:
        part.flags.writeable = False
    return values
