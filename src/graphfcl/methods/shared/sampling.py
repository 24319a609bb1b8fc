"""Drawing labelled nodes: some of each class at once, without a loop over classes."""

import numpy as np


class NodePools:
    """The labelled nodes of each class, ready to be drawn from."""

    def __init__(self, nodes: np.ndarray, labels: np.ndarray, classes: int) -> None:
        self._nodes = nodes[np.argsort(labels, kind="stable")]
        self.sizes = np.bincount(labels, minlength=classes)
        self._starts = np.concatenate([[0], np.cumsum(self.sizes)])[:-1]

    def draw(self, columns: np.ndarray, counts: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """(columns, max count) different nodes of each class in random order; -1 fills up.

        A class with fewer nodes than asked for gives all it has. Large classes draw twice as often as needed and keep
        the first different ones; small classes (less than four times what is asked for) are shuffled whole.
        """
        sizes = self.sizes[columns]
        counts = np.minimum(counts, sizes)
        chosen = np.full((columns.size, int(counts.max(initial=0))), -1, dtype=np.int64)
        small = sizes < 4 * counts
        if small.any():
            chosen[small] = _shuffle(sizes[small], counts[small], chosen.shape[1], random)
        left = np.flatnonzero(~small & (counts > 0))
        while left.size:
            drawn = _first_different(sizes[left], counts[left], chosen.shape[1], random)
            done = (drawn >= 0).sum(axis=1) == counts[left]
            chosen[left[done]] = drawn[done]
            left = left[~done]
        return np.where(chosen < 0, -1, self._nodes[(self._starts[columns][:, None] + chosen).clip(min=0)])


def _shuffle(sizes: np.ndarray, counts: np.ndarray, width: int, random: np.random.Generator) -> np.ndarray:
    """(classes, width) a random selection of 0..size−1 in random order, -1 after ``counts``."""
    longest = max(width, int(sizes.max()))
    keys = random.random((sizes.size, longest))
    keys[np.arange(longest)[None] >= sizes[:, None]] = 2.0
    order = np.argsort(keys, axis=1)[:, :width]
    return np.where(np.arange(width)[None] < counts[:, None], order, -1)


def _first_different(sizes: np.ndarray, counts: np.ndarray, width: int, random: np.random.Generator) -> np.ndarray:
    """(classes, width) the first ``counts`` different of 2·width draws from 0..size−1; fewer if too many are equal."""
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
    """The drawn nodes of each class as supports and queries.

    A class that has fewer nodes than asked for gives a third of them as queries, at least 1 and at most ``queries``,
    and of the others at most ``supports``.
    """
    count = (drawn >= 0).sum(axis=1)
    asked = np.where(count == supports + queries, queries, np.clip(count // 3, 1, queries))
    position = np.arange(drawn.shape[1])[None]
    queried = position < asked[:, None]
    supporting = ~queried & (position < asked[:, None] + supports)
    return np.where(supporting, drawn, -1), np.where(queried, drawn, -1)


def flatten(drawn: np.ndarray, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and classes of a (classes, width) draw, empty places left out."""
    present = drawn >= 0
    return drawn[present], np.repeat(classes, present.sum(axis=1))
