"""A few tight groups among unlabelled nodes: never a partition, of which most parts are mixed.

Every node has a *ball*: itself and the m − 1 nodes most like it. Two figures say how tight a ball B is::

    cohesion(B) = ‖ Σ_{v∈B} x(v) ‖ / m                  x(v): unit length; 1 if all point the same way
    inside(B)   = links between members / links of members

The tightest balls, by the sum of their ranks in both, become cores. A core grows by nodes that have half of their
nearest inside and are as near to its mean as its own members.

What tightness is worth differs from graph to graph, so nodes of known classes teach it: their balls are made in the
same way, and a logistic regression learns the purity of a ball (the share of its largest class) from both figures. The
tightest balls are chosen ones and groups are larger than their cores, so groups are found among these nodes too, and
the mean difference of their true purity from what the regression says is added. The sum is the *estimated purity*. It
is honest if the nodes were hidden from the encoder that made the vectors.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from graphfcl.active.clusters import nearest_rows

CORES = (10, 25)  # nodes of a ball: a twentieth of all nodes, between these
NEAREST = 10  # a node joins a group if of so many nearest
JOINS = 0.5  # this share is in it;
ROUNDS = 10  # a group grows so many times at most
APART = 0.2  # a core has at most this share of its nearest in other groups
FEWEST = 40  # labelled nodes that teach how pure tight balls are
USUAL = (-6.0, 9.0, 2.0)  # what cohesion and links are worth where labels are too few: offset, cohesion, inside
HIGHEST_PURITY = 0.99  # of a group: a few labelled classes cannot show more
CHECKED = 10  # groups among known nodes whose true purity corrects the regression
LOWEST_PURITY = 0.05
OUTER = 0.005  # share of labelled balls at either end beyond which a figure counts no more


@dataclass(frozen=True, eq=False)
class Crowd:
    """Some nodes, as a clustering sees them.

    values: (n, d) float32 of unit length. links: (n, n) CSR, the links between them. degrees: (n,) all their links,
    those to other nodes counted too.
    """

    values: np.ndarray
    links: sparse.csr_array
    degrees: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray, near: sparse.csr_array, rows: np.ndarray) -> "Crowd":
        """values: (n, d) of ``rows`` alone. near: (n, N) their rows of the adjacency; a link counts as one."""
        links = sparse.csr_array(near[:, rows])
        plain = sparse.csr_array((np.ones(links.nnz, np.float32), links.indices, links.indptr), shape=links.shape)
        return cls(values, plain, np.diff(near.indptr).astype(np.float64))

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, eq=False)
class Balls:
    """Each node and those most like it.

    members: (n, m) the node itself first. nearest: (n, k) the nodes most like each, likest first. tightness: (n, 2)
    cohesion and inside.
    """

    members: np.ndarray
    nearest: np.ndarray
    tightness: np.ndarray

    @classmethod
    def of(cls, crowd: Crowd, size: int) -> "Balls":
        nearest, _ = nearest_rows(crowd.values, max(size - 1, NEAREST))
        members = np.column_stack([np.arange(len(crowd)), nearest[:, : size - 1]])
        return cls(members, nearest, np.column_stack([_cohesion(crowd, members), _inside(crowd, members)]))


def _cohesion(crowd: Crowd, members: np.ndarray) -> np.ndarray:
    """(n,) the length of the mean vector of each ball; members are added up one place after the other."""
    total = np.zeros_like(crowd.values)
    for place in range(members.shape[1]):
        total += crowd.values[members[:, place]]
    return np.linalg.norm(total, axis=1) / members.shape[1]


def _inside(crowd: Crowd, members: np.ndarray) -> np.ndarray:
    """(n,) the share of the members' links that stay in the ball."""
    count, size = members.shape
    ends = np.arange(count + 1) * size
    balls = sparse.csr_array((np.ones(members.size, np.float32), members.ravel(), ends), shape=(count, count))
    kept = np.asarray((balls @ crowd.links).multiply(balls).sum(axis=1)).ravel()
    return kept / np.maximum(balls @ crowd.degrees, 1.0)


@dataclass(frozen=True)
class PurityModel:
    """How pure a ball of this tightness is: 1 / (1 + exp(−(offset + weights · tightness))) + shift, within bounds.

    low, high: what was seen; a figure beyond counts as the last one that was. shift: what groups differ by from balls.
    """

    offset: float
    weights: tuple[float, float]
    low: tuple[float, float] = (0.0, 0.0)
    high: tuple[float, float] = (1.0, 1.0)
    shift: float = 0.0

    @classmethod
    def usual(cls) -> "PurityModel":
        return cls(USUAL[0], USUAL[1:])

    @classmethod
    def learned(cls, balls: Balls, columns: np.ndarray) -> "PurityModel":
        """From labelled nodes. columns: (n,) their classes. A weight is never below 0: tighter is never less pure."""
        from sklearn.linear_model import LogisticRegression

        pure = purity(columns[balls.members])
        if len(pure) < FEWEST or pure.min() > 1 - 1e-9:
            return cls.usual()
        low, high = np.quantile(balls.tightness, [OUTER, 1 - OUTER], axis=0)
        seen = np.clip(balls.tightness, low, high)
        scale = seen.std(axis=0)
        used = scale > 1e-6
        # Each ball counts twice: as pure with its purity, as mixed with the rest.
        answers, shares = np.repeat([1, 0], len(pure)), np.concatenate([pure, 1 - pure]) + 1e-6
        weights = np.zeros(2)
        while used.any():
            scaled = seen[:, used] / scale[used]
            model = LogisticRegression(C=100.0, max_iter=1000)
            model.fit(np.concatenate([scaled, scaled]), answers, sample_weight=shares)
            weights[:] = 0
            weights[used] = model.coef_[0] / scale[used]
            if (weights >= 0).all():
                return cls(float(model.intercept_[0]), _pair(weights), _pair(low), _pair(high))
            used &= weights >= 0
        middle = float(np.clip(pure.mean(), 1e-3, 1 - 1e-3))
        return cls(float(np.log(middle / (1 - middle))), (0.0, 0.0))

    def of(self, tightness: np.ndarray) -> np.ndarray:
        """(n,) in (0, 1), from (n, 2)."""
        seen = np.clip(tightness, self.low, self.high)
        share = 1 / (1 + np.exp(-(self.offset + seen @ np.array(self.weights))))
        return np.clip(share + self.shift, LOWEST_PURITY, HIGHEST_PURITY)

    @classmethod
    def of_hidden(cls, crowd: Crowd, columns: np.ndarray) -> "PurityModel | None":
        """From nodes that were hidden from the encoder, corrected by groups found among them; None if they are few.

        columns: (n,) their classes.
        """
        if len(crowd) < FEWEST:
            return None
        model = cls.learned(Balls.of(crowd, core_size(len(crowd))), columns)
        groups = tight_groups(crowd, model, CHECKED)
        stated = [group.estimated_purity for group in groups]
        true = [purity(columns[None, group.rows])[0] for group in groups]
        return replace(model, shift=float(np.mean(true) - np.mean(stated)))

    def as_json(self) -> dict[str, Any]:
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "PurityModel":
        """The reverse; TypeError or ValueError if it is something else."""
        pairs = {name: _pair(np.array(values[name], dtype=np.float64)) for name in ("weights", "low", "high")}
        return cls(offset=float(values["offset"]), shift=float(values["shift"]), **pairs)


def _pair(values: np.ndarray) -> tuple[float, float]:
    return float(values[0]), float(values[1])


def purity(columns: np.ndarray) -> np.ndarray:
    """(n,) the share of the largest class in each row of classes."""
    ordered = np.sort(columns, axis=1)
    largest = np.ones(len(ordered), dtype=np.int64)
    run = np.ones(len(ordered), dtype=np.int64)
    for place in range(1, ordered.shape[1]):
        run = np.where(ordered[:, place] == ordered[:, place - 1], run + 1, 1)
        largest = np.maximum(largest, run)
    return largest / max(1, ordered.shape[1])


@dataclass(frozen=True, eq=False)
class TightGroup:
    """rows: (m,) positions in the crowd, the most typical first (those most like the group's mean).
    estimated_purity: in (0, 1)."""

    rows: np.ndarray
    estimated_purity: float


def core_size(count: int) -> int:
    """How many nodes a ball has among so many nodes. Larger ones are less pure, and teach a class better."""
    return min(max(count // 20, CORES[0]), CORES[1])


def tight_groups(crowd: Crowd, model: PurityModel, count: int) -> list[TightGroup]:
    """At most ``count`` groups that share no node, the tightest first; none if there are fewer nodes than a ball has.

    Fewer groups are the first of more.
    """
    from scipy.stats import rankdata  # slow to import

    size = core_size(len(crowd))
    if len(crowd) < size or count < 1:
        return []
    balls = Balls.of(crowd, size)
    purity = model.of(balls.tightness)
    ranks = rankdata(balls.tightness, axis=0).sum(axis=1)
    taken = np.zeros(len(crowd), dtype=bool)
    groups: list[TightGroup] = []
    for centre in np.argsort(-ranks, kind="stable").tolist():
        core = balls.members[centre]
        if taken[core].any() or taken[balls.nearest[core]].mean() > APART:
            continue
        likeness = crowd.values @ crowd.values[core].mean(axis=0)
        rows = _grown(core, balls.nearest, ~taken & (likeness >= likeness[core].min()))
        taken[rows] = True
        groups.append(TightGroup(_most_typical_first(crowd.values, rows), float(purity[centre])))
        if len(groups) == count:
            break
    return groups


def _grown(core: np.ndarray, nearest: np.ndarray, free: np.ndarray) -> np.ndarray:
    """(m,) the core, and those that have half of their nearest inside, again and again. free: (n,) who may join."""
    inside = np.zeros(len(nearest), dtype=bool)
    inside[core] = True
    for _ in range(ROUNDS):
        joins = (inside[nearest[:, :NEAREST]].mean(axis=1) >= JOINS) & ~inside & free
        if not joins.any():
            break
        inside |= joins
    return np.flatnonzero(inside)


def _most_typical_first(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    likeness = values[rows] @ values[rows].mean(axis=0)
    return rows[np.argsort(-likeness, kind="stable")]
