"""What a strangeness score is."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Strangeness:
    """A named score of nodes: the higher, the less a node looks like any known class.

    name: what histories and model folders call it.
    of: from (n, classes) logits, already divided by the temperature, to (n,) scores.
    """

    name: str
    of: Callable[[np.ndarray], np.ndarray]
