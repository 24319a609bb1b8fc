"""Episodes of meta-training on the host and on a device, and their samplers (Section 4.1 of the HAG-Meta paper)."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch

from graphfcl.methods.state import Labelled, join_labelled
from graphfcl.nn import GraphInputs
from graphfcl.stream.sessions import BaseSession


@dataclass(frozen=True, eq=False)
class Episode:
    """An episode: supports and queries with classes 0..class_count−1, the base classes first.

    Args:
        class_count: Number of classes.
        base_count: Number of base classes.
        supports: (s,) node numbers; the ``few_shot`` supports of classes with few supports come first.
        support_classes: (s,) their classes.
        few_shot: Number of supports of classes with few supports.
        queries: (q,) node numbers.
        query_classes: (q,) their classes.
        own: (q,) position of each query among the supports, or −1. Such a query is left out of its own prototype.
        tasks: (t, N) classes of each task after the base task, padded with −1; the last task is the current one.
    """

    class_count: int
    base_count: int
    supports: np.ndarray
    support_classes: np.ndarray
    few_shot: int
    queries: np.ndarray
    query_classes: np.ndarray
    own: np.ndarray
    tasks: np.ndarray

    @classmethod
    def of(
        cls,
        class_count: int,
        supports: Labelled,
        queries: Labelled,
        own: np.ndarray | None = None,
        tasks: np.ndarray | None = None,
        *,
        base_count: int = 0,
        few_shot: int | None = None,
    ) -> Self:
        """Make an episode from labelled nodes; by default one task of all classes, each with few supports."""
        own = no_places(queries[0].size) if own is None else own
        tasks = np.arange(class_count)[None] if tasks is None else tasks
        few = supports[0].size if few_shot is None else few_shot
        return cls(class_count, base_count, *supports, few, *queries, own, tasks)

    @property
    def task_of_class(self) -> np.ndarray:
        """(class_count,) task of each class: 0 for the base task, j for the j-th task after it."""
        result = np.zeros(self.class_count, dtype=np.int64)
        task, place = np.nonzero(self.tasks >= 0)
        result[self.tasks[task, place]] = task + 1
        return result


@dataclass(eq=False)
class DeviceEpisode:
    """An :class:`Episode` on a device, with rows of the visible graph in place of node numbers.

    Args:
        host: The episode on the host.
        rows: (s + q,) rows of the supports and then of the queries, on the host.
        numbers: All integers of the episode in one tensor on the device. The attributes ``device_rows``,
            ``support_classes``, ``query_classes``, ``own``, ``tasks`` and ``task_of_class`` are views of it.
    """

    host: Episode
    rows: np.ndarray
    numbers: torch.Tensor

    def __post_init__(self) -> None:
        host, queries = self.host, self.host.queries.size
        sizes = [self.rows.size, host.supports.size, queries, queries, host.tasks.size, host.class_count]
        self.device_rows, self.support_classes, self.query_classes, self.own, tasks, self.task_of_class = (
            self.numbers.split(sizes)
        )
        self.tasks = tasks.view(host.tasks.shape)
        self.leaves_out = bool((host.own >= 0).any())  # a query is among the supports

    @classmethod
    def of(cls, episode: Episode, inputs: GraphInputs) -> Self:
        rows = inputs.visible.rows(np.concatenate([episode.supports, episode.queries]))
        parts = [rows, episode.support_classes, episode.query_classes]
        parts += [episode.own, episode.tasks.ravel(), episode.task_of_class]
        return cls(episode, rows, torch.from_numpy(np.concatenate(parts)).to(inputs.device))

    @property
    def signature(self) -> tuple[int | bool, ...]:
        """Sizes of the episode. Episodes with the same signature need the same kernel launches."""
        host = self.host
        counts = (host.class_count, host.base_count, host.few_shot, host.supports.size, self.rows.size)
        return (*counts, *host.tasks.shape, self.leaves_out)

    def over(self, numbers: torch.Tensor) -> Self:
        """Replace the numbers by others of the same size."""
        return replace(self, numbers=numbers)


class Sampler(ABC):
    """An endless sequence of episodes. The position in it is saved if episodes depend on earlier ones."""

    @abstractmethod
    def sample(self, random: np.random.Generator) -> Episode:
        """Draw the next episode."""

    def values(self) -> dict[str, Any]:
        """Return the position in the sequence as plain values."""
        return {}

    def load(self, values: dict[str, Any]) -> None:  # noqa: B027
        """Continue from a saved position."""


class NodePools:
    """The labelled nodes of each class, prepared for drawing."""

    def __init__(self, nodes: np.ndarray, labels: np.ndarray, classes: int) -> None:
        self._nodes = nodes[np.argsort(labels, kind="stable")]
        self.sizes = np.bincount(labels, minlength=classes)
        self._starts = np.concatenate([[0], np.cumsum(self.sizes)])[:-1]

    def draw(self, columns: np.ndarray, counts: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Draw distinct nodes of each class in random order.

        A class with fewer nodes than its count returns all its nodes. Classes with at least four times as many nodes as
        the count draw twice as many as needed and keep the first distinct ones; smaller classes are shuffled.

        Returns:
            (columns, max count) node numbers, padded with −1.
        """
        sizes = self.sizes[columns]
        counts = np.minimum(counts, sizes)
        chosen = np.full((columns.size, int(counts.max(initial=0))), -1, dtype=np.int64)
        small = sizes < 4 * counts
        if small.any():
            chosen[small] = _shuffle(sizes[small], counts[small], chosen.shape[1], random)
        left = np.flatnonzero(~small & (counts > 0))
        while left.size:
            drawn = _first_distinct(sizes[left], counts[left], chosen.shape[1], random)
            done = (drawn >= 0).sum(axis=1) == counts[left]
            chosen[left[done]] = drawn[done]
            left = left[~done]
        return np.where(chosen < 0, -1, self._nodes[(self._starts[columns][:, None] + chosen).clip(min=0)])


@dataclass
class PseudoIncrementalSampler(Sampler):
    """Graph Pseudo Incremental Learning: an endless row of sessions over the pseudo-novel classes.

    Each session takes N pseudo-novel classes that are not known yet, or all if there are fewer. Their K supports stay
    cached as long as the classes are known. When fewer than N unknown classes are left, the cache is emptied and all
    pseudo-novel classes are unknown again.
    """

    pools: NodePools
    base_columns: np.ndarray
    pseudo_novel_columns: np.ndarray
    way: int
    shot: int
    base_supports: int
    queries: int

    def __post_init__(self) -> None:
        self.known = np.zeros(0, dtype=np.int64)  # (known,) columns in the order of learning
        self.cached = np.zeros((0, self.shot), dtype=np.int64)  # (known, K) their supports

    @classmethod
    def of(cls, base: BaseSession, pseudo_novel: np.ndarray, *options: Any) -> Self:
        """Sample from the train nodes of session 0 and some pseudo-novel columns. ``options`` are the last fields."""
        pools, columns = NodePools(base.train, base.train_labels, len(base.classes)), np.arange(len(base.base_classes))
        return cls(pools, columns, pseudo_novel, base.way, base.shot, *options)

    def sample(self, random: np.random.Generator) -> Episode:
        """Draw the next session. Its new classes are known afterwards."""
        size = min(self.way, self.pseudo_novel_columns.size)
        left = np.setdiff1d(self.pseudo_novel_columns, self.known)
        if left.size < size:
            self.known, self.cached = self.known[:0], self.cached[:0]
            left = self.pseudo_novel_columns
        new = random.permutation(left)[:size]
        supports = self.pools.draw(new, np.full(size, self.shot), random)
        self.known, self.cached = np.concatenate([self.known, new]), np.concatenate([self.cached, supports])

        base = self.base_columns
        wanted = np.full(base.size, self.base_supports + self.queries)
        drawn = self.pools.draw(base, wanted, random)
        base_supports, base_queries = split_draw(drawn, self.base_supports, self.queries)
        drawn = self.pools.draw(self.known, np.full(self.known.size, self.shot + self.queries), random)
        novel_queries = self._without_supports(drawn)
        places = np.arange(base.size + self.known.size)
        few = flatten(self.cached, places[base.size :])
        all_supports = join_labelled(few, flatten(base_supports, places[: base.size]))
        queries = join_labelled(flatten(base_queries, places[: base.size]), flatten(novel_queries, places[base.size :]))
        tasks = np.full((self.known.size // size, self.way), -1, dtype=np.int64)
        tasks[:, :size] = places[base.size :].reshape(-1, size)
        return Episode.of(places.size, all_supports, queries, tasks=tasks, base_count=base.size, few_shot=few[0].size)

    def values(self) -> dict[str, Any]:
        return {"known": self.known.tolist(), "cached": self.cached.tolist()}

    def load(self, values: dict[str, Any]) -> None:
        self.known = np.array(values["known"], dtype=np.int64)
        self.cached = np.array(values["cached"], dtype=np.int64).reshape(-1, self.shot)

    def _without_supports(self, drawn: np.ndarray) -> np.ndarray:
        """Select the first m drawn nodes of each known class that are not among its cached supports."""
        free = (drawn >= 0) & ~(drawn[:, :, None] == self.cached[:, None, :]).any(axis=2)
        return np.where(free & (np.cumsum(free, axis=1) <= self.queries), drawn, -1)


def _shuffle(sizes: np.ndarray, counts: np.ndarray, width: int, random: np.random.Generator) -> np.ndarray:
    """Draw ``counts`` of 0..size−1 without replacement for each class: (classes, width), padded with −1."""
    longest = max(width, int(sizes.max()))
    keys = random.random((sizes.size, longest))
    keys[np.arange(longest)[None] >= sizes[:, None]] = 2.0
    order = np.argsort(keys, axis=1)[:, :width]
    return np.where(np.arange(width)[None] < counts[:, None], order, -1)


def _first_distinct(sizes: np.ndarray, counts: np.ndarray, width: int, random: np.random.Generator) -> np.ndarray:
    """Keep the first ``counts`` distinct numbers of 2·width draws from 0..size−1: (classes, width), padded with −1."""
    drawn = (random.random((sizes.size, 2 * width)) * sizes[:, None]).astype(np.int64)
    order = np.argsort(drawn, axis=1, kind="stable")
    in_order = np.take_along_axis(drawn, order, axis=1)
    repeated = np.zeros(drawn.shape, dtype=bool)
    np.put_along_axis(repeated, order[:, 1:], in_order[:, 1:] == in_order[:, :-1], axis=1)
    rank = np.where(repeated, -1, np.cumsum(~repeated, axis=1) - 1)
    kept = (rank >= 0) & (rank < counts[:, None])
    result = np.full((sizes.size, width), -1, dtype=np.int64)
    rows, places = np.nonzero(kept)
    result[rows, rank[rows, places]] = drawn[rows, places]
    return result


def split_draw(drawn: np.ndarray, supports: int, queries: int) -> tuple[np.ndarray, np.ndarray]:
    """Split the drawn nodes of each class into supports and queries.

    If a class has fewer nodes than ``supports + queries``, a third of them become queries (at least 1 and at most
    ``queries``), and at most ``supports`` of the remaining ones become supports.
    """
    count = (drawn >= 0).sum(axis=1)
    taken = np.where(count == supports + queries, queries, np.clip(count // 3, 1, queries))[:, None]
    position = np.arange(drawn.shape[1])[None]
    queried = position < taken
    supporting = ~queried & (position < taken + supports)
    return np.where(supporting, drawn, -1), np.where(queried, drawn, -1)


def flatten(drawn: np.ndarray, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and classes of a (classes, width) draw without its padding."""
    present = drawn >= 0
    return drawn[present], np.repeat(classes, present.sum(axis=1))


@dataclass
class TaskSampler(Sampler):
    """Few-shot tasks of ``way`` classes, or of all if None, with K supports and m queries per class."""

    pools: NodePools
    columns: np.ndarray
    shot: int
    queries: int
    way: int | None = None

    @classmethod
    def of(cls, base: BaseSession, pseudo_novel: np.ndarray, *options: Any) -> Self:
        """Sample from the base classes and some pseudo-novel columns. ``options`` are the last fields."""
        pools = NodePools(base.train, base.train_labels, len(base.classes))
        columns = np.concatenate([np.arange(len(base.base_classes)), pseudo_novel])
        return cls(pools, columns[pools.sizes[columns] > 1], *options)  # one node cannot be support and query

    def sample(self, random: np.random.Generator) -> Episode:
        chosen = random.permutation(self.columns)[: self.way]
        drawn = self.pools.draw(chosen, np.full(chosen.size, self.shot + self.queries), random)
        places = np.arange(chosen.size)
        supports, queries = split_draw(drawn, self.shot, self.queries)
        return Episode.of(chosen.size, flatten(supports, places), flatten(queries, places))


def no_places(count: int) -> np.ndarray:
    """Return (count,) −1, for queries that are not among the supports."""
    return np.full(count, -1, dtype=np.int64)
