"""How few labelled nodes are near: a class that nobody has taught has none, a class of five has hardly any.

The second is why it counts for little: two spreads at most.
"""

import numpy as np

from graphfcl.production.answers.ood_scores.contract import Evidence, Measure


def _ood_score(evidence: Evidence) -> np.ndarray:
    near = evidence.mean_of_neighbours(evidence.labelled.astype(np.float64))
    return -evidence.around(np.where(evidence.degrees > 0, near, 0.0))


UNLABELLED_AROUND = Measure("unlabelled around", _ood_score, limit=2.0)
