"""Pseudo-incremental episodes from which some base classes are left out at random."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphfcl.methods.shared.episodes import Episode, PseudoIncrementalSampler


@dataclass
class PartialSampler:
    """Episodes of another sampler with a share of their base classes."""

    whole: PseudoIncrementalSampler
    share: float

    def sample(self, random: np.random.Generator) -> Episode:
        episode = self.whole.sample(random)
        kept = min(episode.base_count, max(1, round(self.share * episode.base_count)))
        left_out = random.permutation(episode.base_count)[kept:]
        return without_classes(episode, left_out)

    def values(self) -> dict[str, Any]:
        return self.whole.values()

    def load(self, values: dict[str, Any]) -> None:
        self.whole.load(values)


def without_classes(episode: Episode, left_out: np.ndarray) -> Episode:
    """The episode without some base classes; the others move up. No query is one of the supports."""
    stays = np.ones(episode.class_count, dtype=bool)
    stays[left_out] = False
    place = np.cumsum(stays) - 1
    supports, queries = stays[episode.support_classes], stays[episode.query_classes]
    return replace(
        episode,
        class_count=int(stays.sum()),
        base_count=episode.base_count - left_out.size,
        supports=episode.supports[supports],
        support_classes=place[episode.support_classes[supports]],
        queries=episode.queries[queries],
        query_classes=place[episode.query_classes[queries]],
        own=episode.own[queries],
        tasks=np.where(episode.tasks >= 0, place[episode.tasks], -1),
    )
