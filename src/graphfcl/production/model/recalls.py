"""Recalls of classes as counts, with confidence intervals: 8 of 9 (57 to 98 %)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphfcl.production.answers.answers import few_shot_classes
from graphfcl.production.answers.ood_scores import MANY_NODES
from graphfcl.production.labels.label_store import LabelStore
from graphfcl.production.model.calibrating import MOST_QUERIES

Z = 1.96  # quantile of the normal distribution for a 95 % interval


@dataclass(frozen=True)
class Recall:
    """Number of correctly predicted nodes (``right``) among the measured nodes of a class (``of``)."""

    right: int
    of: int

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of Wilson (1927)."""
        return wilson_interval(self.right / self.of, self.of)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.right:,} of {self.of:,} ({100 * low:.0f} to {100 * high:.0f} %)"

    def __add__(self, other: "Recall") -> "Recall":
        return Recall(self.right + other.right, self.of + other.of)

    def as_json(self) -> dict[str, Any]:
        low, high = self.interval
        return {"right": self.right, "of": self.of, "low": round(low, 4), "high": round(high, 4)}


def wilson_interval(share: float, count: int) -> tuple[float, float]:
    """Return the 95 % interval of Wilson (1927) for a share of ``count`` nodes."""
    middle = (share + Z**2 / (2 * count)) / (1 + Z**2 / count)
    half = Z / (1 + Z**2 / count) * np.sqrt(share * (1 - share) / count + Z**2 / (4 * count**2))
    return max(0.0, float(middle - half)), min(1.0, float(middle + half))


def is_loss(before: Recall, after: Recall) -> bool:
    """Return whether a recall fell by more than chance explains: the 95 % interval of the difference is above 0.

    The interval is method 10 of Newcombe (1998). It assumes independent measurements, which is cautious if both are on
    the same nodes.
    """
    first, second = before.right / before.of, after.right / after.of
    return first - second > np.hypot(first - before.interval[0], after.interval[1] - second)


def measured_recalls(labels: LabelStore, accuracy: Mapping[str, Any], nodes: int = 0) -> dict[str, Recall]:
    """Return the recall of each measured class by name. ``nodes``: number of nodes of the graph.

    A class of session 0 is measured on its validation nodes, a later one on its supports, each left out.
    """
    recalls, few = accuracy.get("classes") or {}, few_shot_classes(labels)
    held_out = labels.counts(validation=True)
    counts = np.where(few, labels.counts(), np.minimum(held_out, MOST_QUERIES) if nodes > MANY_NODES else held_out)
    return {
        name: Recall(round(recalls[name] * count), count)
        for name, count in zip(labels.classes, counts.tolist(), strict=True)
        if count and name in recalls
    }
