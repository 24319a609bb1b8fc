"""−log Σ exp of the logits: strange is a node that is far from all classes taken together.

Liu, Wang, Owens, Li: Energy-based Out-of-distribution Detection. NeurIPS 2020.
"""

import numpy as np
from scipy.special import logsumexp

from graphfcl.production.strangeness.contract import Strangeness


def _strangeness(logits: np.ndarray) -> np.ndarray:
    return -logsumexp(logits, axis=1)


ENERGY = Strangeness("energy", _strangeness)
