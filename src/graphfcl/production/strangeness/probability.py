"""−log p of the likeliest class: strange is a node that no class stands out for."""

import numpy as np
from scipy.special import logsumexp

from graphfcl.production.strangeness.contract import Strangeness


def _strangeness(logits: np.ndarray) -> np.ndarray:
    return logsumexp(logits, axis=1) - logits.max(axis=1)


PROBABILITY = Strangeness("probability", _strangeness)
