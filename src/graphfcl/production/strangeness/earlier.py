"""The single scores that folders of format 1 tell unknown nodes by; they look at a node's scores alone."""

from collections.abc import Callable

import numpy as np

from graphfcl.production.strangeness.energy import energy

EARLIER: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "probability": lambda logits: -energy(logits) - logits.max(axis=1),
    "score": lambda logits: -logits.max(axis=1),
    "energy": energy,
}
"""From (n, columns) scores, divided by the temperature, to (n,) strangeness."""
