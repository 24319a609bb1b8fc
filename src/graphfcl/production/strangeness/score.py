"""− the largest logit: strange is a node that is far from every class."""

import numpy as np

from graphfcl.production.strangeness.contract import Strangeness


def _strangeness(logits: np.ndarray) -> np.ndarray:
    return -logits.max(axis=1)


SCORE = Strangeness("score", _strangeness)
