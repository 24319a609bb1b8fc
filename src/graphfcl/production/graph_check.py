"""Check a graph for problems before a model is trained on it.

Whether edges and their weights help is measured with a class-balanced ridge regression on propagated features: with
P = D^(-1/2) (A + I) D^(-1/2) and the features X, projected to ``WIDTH`` random directions if they are wider,
H = [X, PX, P²X] and W = (HᵀCH + λI)^(-1) HᵀCY. C gives every class the same weight. Labelled nodes are predicted by
cross-validation.
"""

import difflib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from graphfcl.errors import counted, quoted
from graphfcl.graph import Graph
from graphfcl.graph.build import is_serious
from graphfcl.graph.convert import as_graph
from graphfcl.graph.labels import alike_names
from graphfcl.graph.tables.node_columns import Association

FEW = 7  # a class with fewer labels is learned as a few-shot class (K + 2 with the default K = 5)
LISTED = 5
ALIKE, MOST_NAMES = 0.85, 1_000  # least similarity of two names that are reported, and most names that are compared
FOLDS, PENALTY, WIDTH = 5, 1e-2, 64
MOST_LABELLED, FEWEST_LABELLED = 20_000, 50
LEAST_GAIN = 0.01  # least difference of balanced accuracy that counts; it must also exceed two standard errors
LONE = 0.5  # largest share of nodes without edges


@dataclass(frozen=True)
class Finding:
    """Possible problem of a graph that a user should look at.

    Args:
        kind: Identifier for programs, such as ``edges-hurt``.
        serious: Whether the problem may make a model useless, or hides a mistake.
        text: One sentence that describes the problem and what to do.

    Examples:
        >>> from graphfcl import Finding
        >>> finding = Finding("one-class", True, "The graph has 1 class: a classifier needs two or more.")
        >>> finding.as_json()["serious"]
        True
    """

    kind: str
    serious: bool
    text: str

    def as_json(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return asdict(self)


def check_graph(source: object, *, seed: int = 0) -> list[Finding]:
    """Check columns, classes, labels, edges and edge weights of a graph for problems.

    Args:
        source: Graph as for :meth:`GraphClassifier.fit`. A graph folder is read into memory.
        seed: Seed of the random generator.

    Returns:
        Findings, serious ones first; empty if there are none.

    Raises:
        InputError: If ``source`` is not a graph.

    Examples:
        >>> from graphfcl import check_graph, from_edge_index
        >>> graph = from_edge_index([[0, 1], [1, 2]], [[0.0], [1.0], [2.0]], ["a", "a", "a"])
        >>> [finding.kind for finding in check_graph(graph)]
        ['one-class']
    """
    graph = as_graph(source, "check_graph").loaded()
    found = [
        *(Finding("column-tells-label", True, note) for note in graph.notes if is_serious(note) and "column" in note),
        *_columns(graph),
        *_classes(graph),
        *_edges(graph, np.random.default_rng(seed)),
    ]
    return sorted(found, key=lambda finding: not finding.serious)


def _columns(graph: Graph) -> Iterator[Finding]:
    if not graph.feature_count:
        yield Finding("no-features", True, "The graph has no features: only its edges tell its nodes apart.")
        return
    if graph.text is not None or graph.sparse_features:
        return  # TF-IDF gives words that all or no texts contain the weight 0
    if graph.columns is None:  # for a graph from tables, the notes of the graph say this already
        for column in range(graph.feature_count):
            association = Association(graph.labels)
            association.add(pa.chunked_array([graph.features[:, column]]), 0)
            share = association.share()
            if share is not None:
                text = f"Column {_name(graph, column)} nearly determines the label ({share:.1%} of the labelled nodes)"
                yield Finding("column-tells-label", True, f"{text}: if it is not known of other nodes, leave it out.")
    constant = np.flatnonzero(np.ptp(graph.features, axis=0) == 0) if graph.node_count else np.zeros(0, np.int64)
    if constant.size:
        names = [_name(graph, each) for each in constant.tolist()]
        yield Finding(
            "constant-column",
            False,
            f"{counted(constant.size, 'column')} of features ({_some(names)}) have one value for all nodes: drop them.",
        )


def _name(graph: Graph, column: int) -> str:
    return f"feature_{column}" if graph.feature_names is None else str(graph.feature_names[column])


def _classes(graph: Graph) -> Iterator[Finding]:
    sizes = graph.class_sizes
    names, labelled = [str(name) for name in graph.class_names], int((graph.labels >= 0).sum())
    if len(names) < 2:
        yield Finding(
            "one-class", True, f"The graph has {counted(len(names), 'class')}: a classifier needs two or more."
        )
        return
    few = [f"{quoted(name)} ({size})" for name, size in zip(names, sizes, strict=True) if size < FEW]
    if few:
        refused = len(names) - len(few) < 2
        outcome = (
            f"needs two with {FEW} or more (or a smaller --shot)" if refused else "learns them as few-shot classes"
        )
        text = f"{len(few)} of {len(names)} classes have fewer than {FEW} labels ({_some(few)}): `fit` {outcome}."
        yield Finding("few-labels", refused, text)
    for group in alike_names(names):
        both = " and ".join(map(quoted, group))
        text = f"The classes {both} differ only by case, accents or spaces: fold=yes joins them."
        yield Finding("alike-classes", True, text)
    for first, second in _nearly_equal(names):
        text = (
            f"The classes {quoted(first)} and {quoted(second)} have almost the same name: check whether they are one."
        )
        yield Finding("alike-classes", False, text)
    if labelled < graph.node_count / 2:
        share = labelled / max(1, graph.node_count)
        yield Finding("labels", False, f"{share:.1%} of the nodes have a label; the others are visible without one.")


def _nearly_equal(names: list[str]) -> Iterator[tuple[str, str]]:
    """Yield pairs of names that differ by a letter or two. Names with digits are not compared: "class 1" is no
    misspelling.
    """
    plain = [name for name in names[:MOST_NAMES] if len(name) > 3 and not any(letter.isdigit() for letter in name)]
    for place, name in enumerate(plain):
        for other in difflib.get_close_matches(
            name.casefold(), [each.casefold() for each in plain[place + 1 :]], LISTED, ALIKE
        ):
            second = next(each for each in plain[place + 1 :] if each.casefold() == other)
            if other != name.casefold():
                yield name, second


def _edges(graph: Graph, random: np.random.Generator) -> Iterator[Finding]:
    lone = graph.isolated_node_count / max(1, graph.node_count)
    if lone > LONE:
        yield Finding("lone-nodes", True, f"{lone:.1%} of the nodes have no edge: check the ids in the table of edges.")
    labelled = np.flatnonzero(graph.labels >= 0)
    if len(graph.class_names) < 2 or not graph.edge_count:
        return
    if labelled.size < FEWEST_LABELLED:
        text = f"Whether edges help was not measured: that takes {FEWEST_LABELLED} labels, there are {labelled.size}."
        yield Finding("not-measured", False, text)
        return
    nodes = np.sort(random.choice(labelled, min(labelled.size, MOST_LABELLED), replace=False))
    folds, features = random.permutation(nodes.size) % FOLDS, _narrow(graph.features, random)
    plain = sparse.csr_array(graph.adjacency.copy())
    plain.data[:] = 1

    def right(adjacency: sparse.csr_array) -> np.ndarray:
        return (
            cross_predicted(propagated(features, adjacency)[nodes], graph.labels[nodes], folds) == graph.labels[nodes]
        )

    weights = _class_weights(graph.labels[nodes])
    with_edges = right(graph.adjacency)
    if graph.weighted:
        unweighted = right(plain)
        yield from _compared("weights", "edge weights", with_edges, unweighted, weights, "drop the column of weights")
        with_edges = max(with_edges, unweighted, key=lambda each: float(weights @ each))
    without = right(sparse.csr_array(plain.shape, dtype=np.float32))
    yield from _compared("edges", "edges", with_edges, without, weights, "check what an edge means")


def _compared(
    kind: str, what: str, used: np.ndarray, unused: np.ndarray, weights: np.ndarray, fix: str
) -> Iterator[Finding]:
    """Yield a finding if edges or weights do not help a linear classifier.

    ``used``, ``unused``: (m,) bool, correct predictions with and without them.
    """
    gains = used.astype(float) - unused
    gain = float(weights @ gains)
    error = float(np.sqrt(np.square(weights) @ np.square(gains - gain)))
    both = f"{weights @ used:.1%} balanced accuracy of a linear classifier with them, {weights @ unused:.1%} without"
    if gain < -max(LEAST_GAIN, 2 * error):
        yield Finding(f"{kind}-hurt", True, f"The {what} lower the accuracy ({both}): {fix}.")
    elif gain < max(LEAST_GAIN, 2 * error):
        yield Finding(f"{kind}-do-not-help", False, f"The {what} do not help ({both}): {fix}.")


def _narrow(features: Any, random: np.random.Generator) -> np.ndarray:
    """Return (n, at most WIDTH) float32 features: standardised columns, or rows of words with length 1."""
    if sparse.issparse(features):
        lengths = np.sqrt(np.asarray(features.multiply(features).sum(axis=1)).ravel())
        features = sparse.diags_array(1 / np.maximum(lengths, 1e-12)) @ features
    else:
        features = features - features.mean(axis=0)
        features /= np.maximum(features.std(axis=0), 1e-12)
    if features.shape[1] <= WIDTH:
        return np.asarray(features.toarray() if sparse.issparse(features) else features, dtype=np.float32)
    directions = random.standard_normal((features.shape[1], WIDTH)).astype(np.float32) / np.sqrt(WIDTH)
    return np.asarray(features @ directions, dtype=np.float32)


def propagated(features: np.ndarray, adjacency: sparse.csr_array) -> np.ndarray:
    """Return (n, 3d + 1) features: own features, features of one and of two hops, and a constant 1."""
    count = adjacency.shape[0]
    scale = sparse.diags_array(1 / np.sqrt(np.asarray(adjacency.sum(axis=1)).ravel() + 1))
    matrix = sparse.csr_array(scale @ (adjacency + sparse.eye_array(count)) @ scale, dtype=np.float32)
    first = matrix @ features
    return np.hstack([features, first, matrix @ first, np.ones((count, 1), dtype=np.float32)])


def _class_weights(labels: np.ndarray) -> np.ndarray:
    """Return (m,) weights with the sum 1, the same total for every class."""
    _, places, counts = np.unique(labels, return_inverse=True, return_counts=True)
    return 1 / (counts.size * counts[places])


def cross_predicted(inputs: np.ndarray, labels: np.ndarray, folds: np.ndarray) -> np.ndarray:
    """Return (m,) predicted labels, each by a class-balanced ridge regression on the other folds."""
    classes, predicted = np.unique(labels), np.empty_like(labels)
    for fold in range(FOLDS):
        train, test = folds != fold, folds == fold
        weights = _class_weights(labels[train])[:, np.newaxis]
        known, targets = inputs[train].astype(np.float64), (labels[train][:, np.newaxis] == classes).astype(np.float64)
        gram = known.T @ (weights * known)
        gram[np.diag_indices_from(gram)] += PENALTY * np.trace(gram) / gram.shape[0]
        solution = np.linalg.solve(gram, known.T @ (weights * targets))
        predicted[test] = classes[np.argmax(inputs[test] @ solution, axis=1)]
    return predicted


def _some(names: list[str]) -> str:
    return ", ".join(names[:LISTED]) + (f" and {len(names) - LISTED:,} more" if len(names) > LISTED else "")
