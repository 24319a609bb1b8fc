"""−Σ p log p: strange is a node that no class stands out for, or whose neighbours are of that kind."""

import numpy as np

from graphfcl.production.answers.ood_scores.contract import Evidence, Measure


def _own(evidence: Evidence) -> np.ndarray:
    from scipy.special import entr, softmax  # whoever reads answers does not wait for it

    return evidence.of_scores(lambda scores: entr(softmax(scores / evidence.temperature, axis=1)).sum(axis=1))


ENTROPY = Measure("entropy", _own, tempers=True)
ENTROPY_AROUND = Measure("entropy around", _own, around=True, tempers=True)
