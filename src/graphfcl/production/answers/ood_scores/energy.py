"""−log Σ exp of the scores: strange is a node that is far from all classes taken together, or whose neighbours are.

Liu, Wang, Owens, Li: Energy-based Out-of-distribution Detection. NeurIPS 2020. Mixed with the neighbours: Wu, Chen,
Yang, Yan: Energy-based Out-of-Distribution Detection for Graph Neural Networks. ICLR 2023.
"""

import numpy as np

from graphfcl.production.answers.ood_scores.contract import Evidence, Measure


def energy(scores: np.ndarray) -> np.ndarray:
    """(n,) from (n, columns) scores."""
    from scipy.special import logsumexp  # whoever reads answers does not wait for it

    return -logsumexp(scores, axis=1)


def _own(evidence: Evidence) -> np.ndarray:
    return evidence.of_scores(energy)


ENERGY = Measure("energy", _own, tempers=True)
ENERGY_AROUND = Measure("energy around", _own, around=True, tempers=True)
