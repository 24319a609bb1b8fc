"""Whether the answer is a class that was learned after session 0: such classes look stranger than others."""

import numpy as np

from graphfcl.production.answers.ood_scores.contract import Evidence, Measure


def _ood_score(evidence: Evidence) -> np.ndarray:
    return evidence.few[evidence.of_scores(lambda scores: scores.argmax(axis=1))].astype(np.float64)


FEW_SHOT = Measure("few-shot answer", _ood_score, standard=False)
