"""An episode as a network computes it: its numbers on a device, brought there in one copy."""

from dataclasses import dataclass, replace

import numpy as np
import torch

from graphfcl.methods.shared.episodes import Episode
from graphfcl.nn import GraphInputs


@dataclass(frozen=True, eq=False)
class DeviceEpisode:
    """The fields are those of :class:`~graphfcl.methods.shared.episodes.Episode`, with rows in place of nodes.

    rows: (s + q,) of the supports and then of the queries in the visible graph, on the host.
    numbers: all that follows, side by side on the device; the properties are views of it.
    shape: (t, N) of ``tasks``. leaves_out: whether a query is among the supports.
    """

    class_count: int
    base_count: int
    few_shot: int
    support_count: int
    shape: tuple[int, int]
    leaves_out: bool
    rows: np.ndarray
    numbers: torch.Tensor

    @classmethod
    def of(cls, episode: Episode, inputs: GraphInputs) -> "DeviceEpisode":
        rows = inputs.visible.rows(np.concatenate([episode.supports, episode.queries]))
        parts = [rows, episode.support_classes, episode.query_classes]
        parts += [episode.own, episode.tasks.ravel(), episode.task_of_class]
        return cls(
            class_count=episode.class_count,
            base_count=episode.base_count,
            few_shot=episode.few_shot,
            support_count=episode.supports.size,
            shape=(episode.tasks.shape[0], episode.tasks.shape[1]),
            leaves_out=bool((episode.own >= 0).any()),
            rows=rows,
            numbers=torch.from_numpy(np.concatenate(parts)).to(inputs.device),
        )

    @property
    def signature(self) -> tuple[int | bool, ...]:
        """Two episodes with the same signature are computed by the same launches."""
        counts = (self.class_count, self.base_count, self.few_shot, self.support_count, self.rows.size)
        return (*counts, *self.shape, self.leaves_out)

    def over(self, numbers: torch.Tensor) -> "DeviceEpisode":
        """The same with other numbers of the same size."""
        return replace(self, numbers=numbers)

    def _part(self, place: int) -> torch.Tensor:
        queries = self.rows.size - self.support_count
        tasks = self.shape[0] * self.shape[1]
        sizes = [self.rows.size, self.support_count, queries, queries, tasks, self.class_count]
        return self.numbers.split(sizes)[place]

    @property
    def device_rows(self) -> torch.Tensor:
        """(s + q,) the rows."""
        return self._part(0)

    @property
    def support_classes(self) -> torch.Tensor:
        return self._part(1)

    @property
    def query_classes(self) -> torch.Tensor:
        return self._part(2)

    @property
    def own(self) -> torch.Tensor:
        return self._part(3)

    @property
    def tasks(self) -> torch.Tensor:
        return self._part(4).view(self.shape)

    @property
    def task_of_class(self) -> torch.Tensor:
        return self._part(5)
