"""Expected gain of a class's recall from more labels.

The error of a class with n labels is assumed to fall as n^-b. Then k = 10 more labels, given to `learn`, gain

    gain = ê · (1 − (n / (n + k))^b),        ê = (v · e + 2 · ē) / (v + 2)

- e is the error of the class, measured on v nodes: validation nodes for a class of session 0; for a few-shot class its
  supports, each left out; v = 0 if it was not measured.
- ē is the error over all measured nodes of the same kind of class.
- b is fitted by least squares, once for each of the two kinds, to the gains from earlier labels:

    b = (λ · b0 + Σ v · x · (e1 − e2)) / (λ + Σ v · x² · (e1 + e2) / 2),  between 0 and 1

The sums run over all classes that `learn` took from n1 to n2 labels and from error e1, measured on v1 nodes, to error
e2, measured on v2. x = ln(n2 / n1) and v = v1 · v2 / (v1 + v2), since the variance of e1 − e2 is about (e1 + e2) / 2v.

The prior is b0 ± λ^-½, where b0 is the exponent of ANCHOR on test nodes of development graphs. λ is large for two
reasons: the same supports are left out in many changes; and left-out supports overstate the error, and so the gain, if
a method uses unlabelled nodes, as ANCHOR does. The accuracy in the history contains the sums.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphfcl.production.answers.answers import few_shot_classes
from graphfcl.production.labels.label_store import LabelStore

MORE = 10  # k, the number of further labels for which the gain is estimated
PSEUDO_NODES = 2
PRIOR_WEIGHT = 100.0  # λ
PRIOR = 0.2  # b0
SUMS = "learning_curve"  # key of the accuracy that holds the two sums of each kind of class

Sums = Mapping[str, list[float]]


def expected_gains(labels: LabelStore, accuracy: Mapping[str, Any]) -> np.ndarray:
    """Return (classes,) gains in recall from ``MORE`` more labels; NaN if no class of its kind was measured."""
    counts, few = labels.counts(), few_shot_classes(labels)
    recalls, nodes = _measured(labels, accuracy)
    wrong = nodes * (1 - recalls)
    gains = np.full(counts.size, np.nan)
    for kind, here in (("few_shot", few), ("session_zero", ~few)):
        if nodes[here].any():
            mean = wrong[here].sum() / nodes[here].sum()
            error = (wrong[here] + PSEUDO_NODES * mean) / (nodes[here] + PSEUDO_NODES)
            shrink = (counts[here] / (counts[here] + MORE)) ** exponent(kind, accuracy.get(SUMS) or {})
            gains[here] = error * (1 - shrink)
    return gains


def exponent(kind: str, sums: Sums) -> float:
    """Return the exponent b of ``few_shot`` or ``session_zero`` classes."""
    gained, expected = sums.get(kind, (0.0, 0.0))
    fitted = (PRIOR_WEIGHT * PRIOR + gained) / (PRIOR_WEIGHT + expected)
    return float(np.clip(fitted, 0, 1))


def observed_sums(
    before: LabelStore, accuracy: Mapping[str, Any], after: LabelStore, measured: Mapping[str, Any]
) -> Sums:
    """Return the sums after a change by `learn`, from labels and accuracy of the model before and after it."""
    place = {name: at for at, name in enumerate(before.classes)}
    both = [(place[name], at) for at, name in enumerate(after.classes) if name in place]
    old, new = np.array(both, dtype=np.int64).reshape(-1, 2).T
    (recall1, nodes1), (recall2, nodes2) = _measured(before, accuracy), _measured(after, measured)
    counts1, counts2 = before.counts()[old], after.counts()[new]
    used = (counts1 != counts2) & (nodes1[old] > 0) & (nodes2[new] > 0)
    old, new = old[used], new[used]
    growth = np.log(counts2[used] / counts1[used])
    weight = nodes1[old] * nodes2[new] / (nodes1[old] + nodes2[new])
    gained = weight * growth * (recall2[new] - recall1[old])
    expected = weight * growth**2 * (1 - (recall1[old] + recall2[new]) / 2)
    few, sums = few_shot_classes(after)[new], accuracy.get(SUMS) or {}
    return {
        kind: [
            round(float(total + values[here].sum()), 6)
            for total, values in zip(sums.get(kind, (0.0, 0.0)), (gained, expected), strict=True)
        ]
        for kind, here in (("few_shot", few), ("session_zero", ~few))
    }


def _measured(labels: LabelStore, accuracy: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return (classes,) recalls, and the numbers of nodes they were measured on; 0 and 0 if not measured."""
    recalls = accuracy.get("classes") or {}
    nodes = np.where(few_shot_classes(labels), labels.counts(), labels.counts(validation=True))
    measured = np.array([name in recalls for name in labels.classes], dtype=bool)
    return np.array([recalls.get(name, 0.0) for name in labels.classes]), np.where(measured, nodes, 0)
