"""Synthetic graphs of any size: a degree-corrected stochastic block model with class-dependent features.

Each node has a propensity θ > 0. It is 0.3 plus a draw from the Lomax distribution (Pareto II) with shape 2.5. Class
sizes decrease geometrically. To draw an edge, we choose the first end with probability proportional to θ. With
probability ``homophily`` the second end comes from the same class, otherwise from all nodes, again with probability
proportional to θ. Features are of one of two kinds: ``words`` (a share of the words of a node comes from words of its
class, the others from a common distribution) or ``dense`` (the mean vector of the class plus Gaussian noise).
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from graphfcl.datasets.dataset import Dataset, settings_from
from graphfcl.errors import InputError
from graphfcl.graph import Features, Graph, build_graph
from graphfcl.graph.build import adjacency_from_edges
from graphfcl.runtime.arrays import search_many
from graphfcl.stream import Protocol

ROUNDS = 20  # maximum number of attempts to draw the missing edges


@dataclass(frozen=True)
class SyntheticSettings:
    """Settings of a synthetic graph.

    Args:
        nodes: Number of nodes.
        edges: Number of undirected edges.
        features: Number of feature columns.
        classes: Number of classes.
        homophily: Probability that the second end of an edge is drawn from the class of the first. Otherwise it is
            drawn from all nodes.
        skew: Size of the smallest class divided by the size of the largest. Class k of C has about
            ``skew ** (k / (C - 1))`` times the size of class 0.
        words: Draws of words per node, for features of the kind ``words``. A repeated word counts once.
        signal: For ``words``, the probability that a word comes from words of the class. For ``dense``, the length of
            the class mean; the noise has the expected squared length 1.
        kind: Kind of the features, ``words`` or ``dense``.
        seed: Seed of the random draw.
    """

    nodes: int = 5_000
    edges: int = 25_000
    features: int = 1_000
    classes: int = 20
    homophily: float = 0.7
    skew: float = 0.2
    words: int = 12
    signal: float = 0.4
    kind: str = "words"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.kind not in ("words", "dense"):
            raise InputError(f"synthetic: kind is {self.kind!r}; it must be words or dense.")
        if not 1 <= self.classes <= self.nodes:
            raise InputError(
                f"synthetic: {self.classes} classes do not fit into {self.nodes} nodes: ask for fewer classes."
            )
        if self.edges < 0 or self.features < 1 or self.words < 0 or self.seed < 0:
            raise InputError("synthetic: edges, words and seed must not be negative, features at least 1.")
        if self.edges > self.nodes * (self.nodes - 1) // 8:
            raise InputError(f"synthetic: {self.edges} edges are too dense for {self.nodes} nodes: ask for fewer.")
        if not (0 <= self.homophily <= 1 and 0 < self.skew <= 1 and self.signal >= 0):
            raise InputError("synthetic: homophily must be in [0, 1], skew in (0, 1], signal not negative.")


REDDIT_SIZE = SyntheticSettings(
    nodes=232_965,
    edges=11_606_919,
    features=602,
    classes=41,
    kind="dense",
    homophily=0.75,
    skew=0.1,
    signal=0.5,
)


def make_synthetic(settings: SyntheticSettings, name: str = "synthetic") -> Graph:
    """Draw a graph. The same settings give the same graph."""
    random = np.random.default_rng(settings.seed)
    places = np.arange(settings.nodes)
    labels = random.permutation(np.searchsorted(class_ends(settings), places, side="right"))
    low, high = _draw_edges(settings, labels, random)
    adjacency, _ = adjacency_from_edges(np.append(low, high), np.append(high, low), None, settings.nodes, name)
    features = draw_features(settings, labels, class_vectors(settings, random), random)
    return build_graph(adjacency, features, labels, class_names=class_names(settings), name=name, where=name)


def class_names(settings: SyntheticSettings) -> tuple[str, ...]:
    """Return the names of the classes."""
    return tuple(f"class-{number:02d}" for number in range(settings.classes))


def too_few_edges(settings: SyntheticSettings, drawn: int) -> InputError:
    """Make the error for a graph with too few different pairs of nodes."""
    return InputError(
        f"synthetic: only {drawn} of {settings.edges} edges were found among {settings.nodes} nodes in "
        f"{settings.classes} classes: ask for fewer edges, fewer classes or less homophily."
    )


def class_ends(settings: SyntheticSettings) -> np.ndarray:
    """Return (classes,) cumulative class sizes: the number of nodes in each class and all classes before it."""
    share = settings.skew ** (np.arange(settings.classes) / max(1, settings.classes - 1))
    ends = np.round(np.cumsum(share) / share.sum() * settings.nodes).astype(np.int64)
    # Rounding may leave a class without a node: increase its end, but keep at least one node for each later class.
    steps = np.arange(settings.classes)
    ends = np.maximum.accumulate(np.maximum(ends, 1) - steps) + steps
    return np.minimum(ends, settings.nodes - steps[::-1])


@dataclass(frozen=True, eq=False)
class Pairs:
    """Draws pairs of nodes by inverse transform sampling. Positions are nodes sorted by class.

    Args:
        settings: Settings of the graph.
        heights: (n + 1,) Cumulative propensities: the sum over all earlier positions.
        table: (n,) Node at each position.
    """

    settings: SyntheticSettings
    heights: np.ndarray
    table: np.ndarray

    def block(self, random: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Draw up to ``size`` pairs of different nodes, the smaller node first. Pairs may repeat."""
        top, ends = self.heights[-1], class_ends(self.settings)
        first = self._pick(random.random(size) * top)
        inside = random.random(size) < self.settings.homophily
        home = np.searchsorted(ends, first, side="right")
        starts = np.concatenate([[0], ends[:-1]])
        low = np.where(inside, self.heights[starts[home]], 0.0)
        high = np.where(inside, self.heights[ends[home]], top)
        second = self._pick(low + random.random(size) * (high - low))
        different = first != second
        one, other = self.table[first[different]], self.table[second[different]]
        return np.minimum(one, other), np.maximum(one, other)

    def _pick(self, heights: np.ndarray) -> np.ndarray:
        return (search_many(self.heights, heights, side="right") - 1).clip(0, self.settings.nodes - 1)


def _draw_edges(
    settings: SyntheticSettings, labels: np.ndarray, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw exactly ``edges`` different pairs."""
    order = np.argsort(labels, kind="stable")
    propensity = random.pareto(2.5, settings.nodes) + 0.3
    pairs = Pairs(settings, np.concatenate([[0.0], np.cumsum(propensity[order])]), order)
    keys = np.zeros(0, dtype=np.int64)
    for _ in range(ROUNDS):
        low, high = pairs.block(random, int((settings.edges - keys.size) * 1.1) + 16)
        keys = np.union1d(keys, low * settings.nodes + high)
        if keys.size >= settings.edges:
            break
    else:
        raise too_few_edges(settings, keys.size)
    keys = np.sort(random.permutation(keys)[: settings.edges])
    return keys // settings.nodes, keys % settings.nodes


def class_vectors(settings: SyntheticSettings, random: np.random.Generator) -> np.ndarray:
    """Draw the parameters of each class: (classes, words of the class) columns, or (classes, features) mean vectors."""
    if settings.kind == "words":
        own = max(1, settings.features // (2 * settings.classes))
        return random.integers(0, settings.features, (settings.classes, own))
    means = random.standard_normal((settings.classes, settings.features))
    means *= settings.signal / np.linalg.norm(means, axis=1, keepdims=True)
    return means.astype(np.float32)


def draw_features(
    settings: SyntheticSettings, labels: np.ndarray, vectors: np.ndarray, random: np.random.Generator
) -> Features:
    """Draw (nodes, features) for nodes with these labels; ``vectors`` come from :func:`class_vectors`."""
    return (_draw_words if settings.kind == "words" else _draw_dense)(settings, labels, vectors, random)


def _draw_words(
    settings: SyntheticSettings, labels: np.ndarray, topics: np.ndarray, random: np.random.Generator
) -> sparse.csr_array:
    """Draw (nodes, features) of 0 and 1; each word comes from the words of the class with probability ``signal``."""
    shape = (labels.size, settings.words)
    common = (settings.features * random.power(0.5, shape)).astype(np.int64)
    special = topics[labels[:, None], random.integers(0, topics.shape[1], shape)]
    words = np.where(random.random(common.shape) < settings.signal, special, common)
    rows = np.repeat(np.arange(labels.size), settings.words)
    matrix = sparse.csr_array(
        (np.ones(words.size, dtype=np.float32), (rows, words.ravel())),
        shape=(labels.size, settings.features),
    )
    matrix.data[:] = 1
    return matrix


def _draw_dense(
    settings: SyntheticSettings, labels: np.ndarray, means: np.ndarray, random: np.random.Generator
) -> np.ndarray:
    """Draw (nodes, features) float32: the class mean, of length ``signal``, plus noise of expected squared length 1."""
    features = random.standard_normal((labels.size, settings.features), dtype=np.float32)
    features *= settings.features**-0.5
    features += means[labels]
    return features


def synthetic_settings(name: str, options: dict[str, str]) -> SyntheticSettings:
    """Return the settings of ``synthetic`` or ``synthetic-reddit`` with the options of a name."""
    settings = settings_from(SyntheticSettings, options, name)
    if name == "synthetic":
        return settings
    return replace(REDDIT_SIZE, **{key: getattr(settings, key) for key in options})


def _load(name: str, options: dict[str, str]) -> Graph:
    return make_synthetic(synthetic_settings(name, options), name)


OPTIONS = tuple(SyntheticSettings.__dataclass_fields__)
SYNTHETIC = Dataset(
    "synthetic",
    "a block model with planted words; sizes as options, e.g. synthetic:nodes=2000,classes=8",
    lambda _, options: _load("synthetic", options),
    "made on the spot",
    options=OPTIONS,
)
SYNTHETIC_REDDIT = Dataset(
    "synthetic-reddit",
    "a block model of Reddit's size: 232,965 nodes, 11.6 million edges, 602 dense features, 41 classes",
    lambda _, options: _load("synthetic-reddit", options),
    "made on the spot",
    Protocol(base=11, pseudo_novel=10, novel=20, way=2, shot=3),
    options=OPTIONS,
)
