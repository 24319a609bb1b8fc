"""The single scores that folders of format 1 tell unknown nodes by; they look at a node's scores alone."""

from collections.abc import Callable

import numpy as np
from scipy.special import logsumexp

EARLIER: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "probability": lambda logits: logsumexp(logits, axis=1) - logits.max(axis=1),
    "score": lambda logits: -logits.max(axis=1),
    "energy": lambda logits: -logsumexp(logits, axis=1),
}
"""From (n, columns) scores, divided by the temperature, to (n,) strangeness."""
