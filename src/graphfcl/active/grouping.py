"""Find a few tight groups among unlabelled nodes. This is not a partition, because most parts of one would be mixed.

The *ball* of a node consists of the node and the m − 1 nodes most similar to it. Two values measure how tight a ball B
is::

    cohesion(B) = ‖ Σ_{v∈B} x(v) ‖ / m                  x(v) has unit length; 1 if all vectors are equal
    inside(B)   = links between members / links of members

The tightest balls, by the sum of their ranks in both values, become the cores of groups. A core grows by nodes of whose
nearest neighbours at least half are in the group and that are as similar to the core's mean as its members.

The meaning of tightness differs from graph to graph, so it is calibrated on nodes of known classes. A logistic
regression predicts the purity of their balls (the share of the largest class) from both values. Groups are larger than
their cores, and selecting the tightest balls biases the prediction. Therefore groups are also formed among the nodes of
known classes, and the mean difference between their true and predicted purity is added. The sum is the *estimated
purity*. It is unbiased only if these nodes were hidden from the encoder that computed the vectors.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from graphfcl.active.clusters import nearest_rows

CORES = (10, 25)  # smallest and largest size of a ball, which is a twentieth of all nodes in between
NEAREST = 10  # nearest neighbours that decide whether a node joins a group
JOINS = 0.5  # share of them that must be in the group
ROUNDS = 10  # in which a group grows, at most
APART = 0.2  # largest share of a core's nearest neighbours in other groups
FEWEST = 40  # labelled nodes needed to fit the regression
USUAL = (-6.0, 9.0, 2.0)  # offset, cohesion and inside of the regression if there are fewer
HIGHEST_PURITY = 0.99  # of an estimate, because a few labelled classes cannot prove more
CHECKED = 10  # groups among known nodes whose true purity corrects the regression
LOWEST_PURITY = 0.05
OUTER = 0.005  # quantile of labelled balls at either end, at which tightness is clipped


@dataclass(frozen=True, eq=False)
class Crowd:
    """Some nodes, with the data that grouping needs.

    Attributes:
        values: Vectors of unit length, float32, shape (n, d).
        links: Links between these nodes, CSR, shape (n, n).
        degrees: Number of links of each node, including links to nodes outside, shape (n,).
    """

    values: np.ndarray
    links: sparse.csr_array
    degrees: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray, adjacency: sparse.csr_array, rows: np.ndarray) -> "Crowd":
        """Collect the nodes ``rows`` from their vectors and their (n, N) rows of the adjacency. Weights are ignored."""
        links = sparse.csr_array(adjacency[:, rows])
        plain = sparse.csr_array((np.ones(links.nnz, np.float32), links.indices, links.indptr), shape=links.shape)
        return cls(values, plain, np.diff(adjacency.indptr).astype(np.float64))

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, eq=False)
class Balls:
    """The ball of each node.

    Attributes:
        members: Nodes of each ball, its centre first, shape (n, m).
        nearest: Most similar other nodes of each node, most similar first, shape (n, k).
        tightness: Cohesion and inside of each ball, shape (n, 2).
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
    """Length of the mean vector of each ball, shape (n,). Summing position by position saves memory."""
    total = np.zeros_like(crowd.values)
    for place in range(members.shape[1]):
        total += crowd.values[members[:, place]]
    return np.linalg.norm(total, axis=1) / members.shape[1]


def _inside(crowd: Crowd, members: np.ndarray) -> np.ndarray:
    """Share of the members' links that stay in the ball, shape (n,)."""
    count, size = members.shape
    ends = np.arange(count + 1) * size
    balls = sparse.csr_array((np.ones(members.size, np.float32), members.ravel(), ends), shape=(count, count))
    kept = np.asarray((balls @ crowd.links).multiply(balls).sum(axis=1)).ravel()
    return kept / np.maximum(balls @ crowd.degrees, 1.0)


@dataclass(frozen=True)
class PurityModel:
    """Predicts the purity of a ball: 1 / (1 + exp(−(offset + weights · tightness))) + shift, within bounds.

    Attributes:
        offset: Intercept of the regression.
        weights: Weights of cohesion and inside.
        low: Smallest tightness that was seen. Smaller values are clipped.
        high: Largest tightness that was seen. Larger values are clipped.
        shift: Mean difference between the true purity of groups and the prediction.
    """

    offset: float
    weights: tuple[float, float]
    low: tuple[float, float] = (0.0, 0.0)
    high: tuple[float, float] = (1.0, 1.0)
    shift: float = 0.0

    @classmethod
    def usual(cls) -> "PurityModel":
        """The default model, for graphs with too few labels."""
        return cls(USUAL[0], USUAL[1:])

    @classmethod
    def learned(cls, balls: Balls, columns: np.ndarray) -> "PurityModel":
        """Fit the regression on labelled nodes with the classes ``columns``. Weights are not negative."""
        from sklearn.linear_model import LogisticRegression

        pure = purity(columns[balls.members])
        if len(pure) < FEWEST or pure.min() > 1 - 1e-9:
            return cls.usual()
        low, high = np.quantile(balls.tightness, [OUTER, 1 - OUTER], axis=0)
        seen = np.clip(balls.tightness, low, high)
        scale = seen.std(axis=0)
        used = scale > 1e-6
        # Each ball is used twice: as pure with weight p, and as mixed with weight 1 − p.
        targets, shares = np.repeat([1, 0], len(pure)), np.concatenate([pure, 1 - pure]) + 1e-6
        weights = np.zeros(2)
        while used.any():
            scaled = seen[:, used] / scale[used]
            model = LogisticRegression(C=100.0, max_iter=1000)
            model.fit(np.concatenate([scaled, scaled]), targets, sample_weight=shares)
            weights[:] = 0
            weights[used] = model.coef_[0] / scale[used]
            if (weights >= 0).all():
                return cls(float(model.intercept_[0]), _pair(weights), _pair(low), _pair(high))
            used &= weights >= 0
        middle = float(np.clip(pure.mean(), 1e-3, 1 - 1e-3))
        return cls(float(np.log(middle / (1 - middle))), (0.0, 0.0))

    def of(self, tightness: np.ndarray) -> np.ndarray:
        """Predict purity from tightness of shape (n, 2); the result has shape (n,)."""
        seen = np.clip(tightness, self.low, self.high)
        share = 1 / (1 + np.exp(-(self.offset + seen @ np.array(self.weights))))
        return np.clip(share + self.shift, LOWEST_PURITY, HIGHEST_PURITY)

    @classmethod
    def of_hidden(cls, crowd: Crowd, columns: np.ndarray) -> "PurityModel | None":
        """Fit on nodes that were hidden from the encoder, and correct by groups among them; None if they are too few.

        ``columns`` holds their classes, shape (n,).
        """
        if len(crowd) < FEWEST:
            return None
        model = cls.learned(Balls.of(crowd, core_size(len(crowd))), columns)
        groups = tight_groups(crowd, model, CHECKED)
        predicted = [group.estimated_purity for group in groups]
        true = [purity(columns[None, group.rows])[0] for group in groups]
        return replace(model, shift=float(np.mean(true) - np.mean(predicted)))

    def as_json(self) -> dict[str, Any]:
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "PurityModel":
        """Read the values of :meth:`as_json`.

        Raises:
            TypeError: If a value has the wrong type.
            ValueError: If a value has the wrong shape.
        """
        pairs = {name: _pair(np.array(values[name], dtype=np.float64)) for name in ("weights", "low", "high")}
        return cls(offset=float(values["offset"]), shift=float(values["shift"]), **pairs)


def _pair(values: np.ndarray) -> tuple[float, float]:
    return float(values[0]), float(values[1])


def purity(columns: np.ndarray) -> np.ndarray:
    """Share of the largest class in each row of classes, shape (n,)."""
    ordered = np.sort(columns, axis=1)
    largest = np.ones(len(ordered), dtype=np.int64)
    run = np.ones(len(ordered), dtype=np.int64)
    for place in range(1, ordered.shape[1]):
        run = np.where(ordered[:, place] == ordered[:, place - 1], run + 1, 1)
        largest = np.maximum(largest, run)
    return largest / max(1, ordered.shape[1])


@dataclass(frozen=True, eq=False)
class TightGroup:
    """A group of similar nodes.

    Attributes:
        rows: Positions in the crowd, those most similar to the group's mean first, shape (m,).
        estimated_purity: Estimated share of the largest class, in (0, 1).
    """

    rows: np.ndarray
    estimated_purity: float


def core_size(count: int) -> int:
    """Size of a ball among ``count`` nodes. Larger balls are less pure, but give a class more labels."""
    return min(max(count // 20, CORES[0]), CORES[1])


def tight_groups(crowd: Crowd, model: PurityModel, count: int) -> list[TightGroup]:
    """Find at most ``count`` disjoint groups, the tightest first; none if there are too few nodes for a ball.

    A smaller ``count`` returns the first of the same groups.
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
        similarity = crowd.values @ crowd.values[core].mean(axis=0)
        rows = _grown(core, balls.nearest, ~taken & (similarity >= similarity[core].min()))
        taken[rows] = True
        groups.append(TightGroup(_most_typical_first(crowd.values, rows), float(purity[centre])))
        if len(groups) == count:
            break
    return groups


def _grown(core: np.ndarray, nearest: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Grow a core by nodes with half of their nearest neighbours inside. ``free`` is a mask of nodes that may join."""
    inside = np.zeros(len(nearest), dtype=bool)
    inside[core] = True
    for _ in range(ROUNDS):
        joins = (inside[nearest[:, :NEAREST]].mean(axis=1) >= JOINS) & ~inside & free
        if not joins.any():
            break
        inside |= joins
    return np.flatnonzero(inside)


def _most_typical_first(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Sort rows by their similarity to the mean, most similar first."""
    similarity = values[rows] @ values[rows].mean(axis=0)
    return rows[np.argsort(-similarity, kind="stable")]
