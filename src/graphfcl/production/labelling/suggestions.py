"""What to label next: nodes that a strategy chooses, each with a reason in plain words and the model's likeliest
classes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphfcl.active import ActiveLearningState, Query, Strategy, checked, find_strategy
from graphfcl.active.clusters import likeliest_of, principal_components, unit_rows
from graphfcl.active.contract import Memory
from graphfcl.errors import InputError
from graphfcl.graph.convert import as_graph
from graphfcl.graph.ids import ClassLabel, text_array
from graphfcl.graph.interfaces import AnyGraph
from graphfcl.production.answers.answers import few_shot_classes
from graphfcl.production.answers.row_values import node_rows
from graphfcl.production.graph import kind_of
from graphfcl.production.labelling.node_vectors import vector_table, vectors_of_all, vectors_without_learner
from graphfcl.production.model.parts import seed_of, whole_number
from graphfcl.production.model.state import ModelState, RowAnswers

LIKELIEST = 5  # most classes of a suggestion
COUNTED = 20_000  # most candidates that are assigned to the most similar suggestion; a random sample of more
LABELLED = 5_000  # most labelled nodes that candidates may be more similar to than to a suggestion
FEW = 60  # without a model, a class with fewer labels counts as few-shot

Likeliest = tuple[tuple[ClassLabel, float], ...]  # classes and their probabilities, likeliest first


@dataclass(frozen=True)
class Suggestion:
    """Unlabelled node that is worth labelling.

    Each field is a plain value or a tuple of values of one type, so that pandas and Polars can make a table of
    suggestions.

    Args:
        node: Id of the node.
        reason: ``cluster``, ``unknown``, ``uncovered``, ``between`` or ``random``. ``unknown`` only if the model calls
            the node unknown.
        why: One sentence that explains the reason.
        classes: Likeliest classes, at most 5; empty without a model.
        probabilities: Probability of each of these classes.
        unknown: Whether the model calls the node unknown, as in :meth:`GraphClassifier.predictions`.
        unknown_score: Unknown score of the node; 0 without a model.

    Examples:
        >>> from graphfcl import load_dataset, suggest_for_graph
        >>> graph, _ = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=30")
        >>> best, *others = suggest_for_graph(graph, budget=3)
        >>> best.reason
        'cluster'
        >>> len(others)
        2
    """

    node: Any
    reason: str
    why: str
    classes: tuple[ClassLabel, ...]
    probabilities: tuple[float, ...]
    unknown: bool
    unknown_score: float

    def as_json(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {
            "node": self.node,
            "reason": self.reason,
            "why": self.why,
            "classes": [
                {"class": name, "probability": round(share, 4)}
                for name, share in zip(self.classes, self.probabilities, strict=True)
            ],
            "unknown": self.unknown,
            "unknown_score": round(self.unknown_score, 4),
        }


def suggest_for_model(
    state: ModelState, budget: int, strategy: str | type[Strategy], seed: int
) -> tuple[Suggestion, ...]:
    """Suggest unlabelled nodes of a model, best first."""
    budget, seed, strategy = _checked(budget, seed, strategy)
    parts, probabilities, random = state.parts, RowAnswers(state), np.random.default_rng([seed, 20])
    visible, labels, calibration = parts.graph.visible, parts.label_store, state.calibration()
    labelled, ood_score = visible.rows(labels.nodes), probabilities.ood_score()
    learning = ActiveLearningState(
        visible=visible,
        vectors=vector_table(state),
        candidates=random.permutation(np.setdiff1d(node_rows(visible), labelled)),
        labelled=labelled,
        columns=labels.class_of_column()[labels.columns],
        late=few_shot_classes(labels),
        scores=probabilities,
        unknown_score=ood_score,
        budget=budget,
        random=random,
        memory=state.answering.memory.find((seed, labels.nodes.tobytes()), Memory),
    )
    queries = checked(find_strategy(strategy).make().choose(learning), learning, strategy)
    rows = np.array([query.row for query in queries], dtype=np.int64)
    classes = [_likeliest(labels.labels, each) for each in probabilities[rows]]
    scores = calibration.unknown_scores(ood_score[rows])
    ids = parts.graph.ids_at(rows)
    return _suggestions(learning, queries, ids, classes, scores, scores > calibration.threshold)


def suggest_for_graph(
    graph: AnyGraph, budget: int = 20, *, strategy: str | type[Strategy] = "auto", seed: int = 0
) -> tuple[Suggestion, ...]:
    """Suggest nodes of a graph to label before there is a model.

    Nodes are compared by features that depend on no label, and by their links where features are few or missing.

    Args:
        graph: Graph in memory or :class:`GraphFolder`; PyG data and networkx graphs are converted. Labelled nodes are
            not suggested, and count as taught. If all nodes are labelled, the labels are ignored.
        budget: Largest number of suggestions.
        strategy: Name of a strategy, or a subclass of :class:`Strategy`. Strategies that need a model are refused.
        seed: Seed of the random generator.

    Returns:
        Suggestions, best first.

    Raises:
        InputError: If an argument is unusable, or the strategy needs a model.

    Examples:
        >>> from graphfcl import load_dataset, suggest_for_graph
        >>> graph, _ = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=30")
        >>> suggestions = suggest_for_graph(graph, budget=5)
        >>> len(suggestions)
        5
        >>> suggestions[0].why
        'it is typical of ... nodes that no labelled node is nearer to'
    """
    graph = as_graph(graph, "suggest_for_graph")
    budget, seed, strategy = _checked(budget, seed, strategy)
    random = np.random.default_rng([seed, 20])
    visible = kind_of(graph).of(graph).standardised(np.arange(graph.node_count)).visible
    labelled = np.flatnonzero(graph.labels >= 0)
    if labelled.size == graph.node_count:
        labelled = labelled[:0]
    learning = ActiveLearningState(
        visible=visible,
        vectors=vectors_of_all(vectors_without_learner(visible, seed), graph.node_count, seed),
        candidates=random.permutation(np.setdiff1d(node_rows(visible), labelled)),
        labelled=labelled,
        columns=graph.labels[labelled],
        late=np.bincount(graph.labels[labelled], minlength=len(graph.class_names)) < FEW,
        scores=None,
        unknown_score=None,
        budget=budget,
        random=random,
    )
    queries = checked(find_strategy(strategy).make().choose(learning), learning, strategy)
    ids = graph.node_ids[np.array([query.row for query in queries], dtype=np.int64)]
    return _suggestions(learning, queries, ids, [()] * ids.size, np.zeros(ids.size), np.zeros(ids.size, dtype=bool))


def _suggestions(
    learning: ActiveLearningState,
    queries: Sequence[Query],
    ids: np.ndarray,
    classes: Sequence[Likeliest],
    scores: np.ndarray,
    unknown: np.ndarray,
) -> tuple[Suggestion, ...]:
    """Make suggestions of queries, from (w,) ids, unknown scores and flags, and the likeliest classes of each."""
    sizes = _represented(learning, np.array([query.row for query in queries], dtype=np.int64))
    of_query = zip(ids.tolist(), queries, sizes.tolist(), classes, scores.tolist(), unknown.tolist(), strict=True)
    suggestions = []
    for node, query, size, likeliest, score, is_unknown in of_query:
        reason = query.reason
        if reason in ("unknown", "uncovered"):  # strategies do not know which nodes the model calls unknown
            reason = "unknown" if is_unknown else "uncovered"
        why = _sentence(reason, size, likeliest, score, learning)
        names, probabilities = tuple(name for name, _ in likeliest), tuple(share for _, share in likeliest)
        suggestions.append(Suggestion(node, reason, why, names, probabilities, is_unknown, score))
    return tuple(suggestions)


def suggestion_table(suggestions: Sequence[Suggestion]) -> dict[str, np.ndarray]:
    """Return the columns ``node, class, guess, probability, unknown, reason, why``; ``class`` is empty, to be filled
    in.

    The model's likeliest class is the ``guess``, so a file that is not filled in teaches nothing.
    """
    first = [(each.classes[0], each.probabilities[0]) if each.classes else ("", 0.0) for each in suggestions]
    nodes = [each.node for each in suggestions]
    numbers = bool(nodes) and all(isinstance(node, int) for node in nodes)
    return {
        "node": np.array(nodes, dtype=np.int64) if numbers else text_array([str(node) for node in nodes]),
        "class": text_array(["" for _ in nodes]),
        "guess": text_array([str(label) for label, _ in first]),
        "probability": text_array([f"{share:.3f}" if label != "" else "" for label, share in first]),
        "unknown": text_array(["yes" if each.unknown else "no" for each in suggestions]),
        "reason": text_array([each.reason for each in suggestions]),
        "why": text_array([each.why for each in suggestions]),
    }


def _checked(budget: int, seed: int, strategy: str | type[Strategy]) -> tuple[int, int, str]:
    """Return the arguments and the name of the strategy, or refuse unusable ones before anything is computed."""
    from graphfcl.active.registry import register_strategy

    budget = whole_number(budget, "the budget", 20)
    if budget < 1:
        raise InputError(f"the budget is {budget}: ask for at least one node.")
    name = strategy if isinstance(strategy, str) else register_strategy(strategy).name
    return budget, seed_of(seed), find_strategy(name).name


def _likeliest(labels: Sequence[ClassLabel], probabilities: np.ndarray) -> Likeliest:
    best = np.argsort(-probabilities, kind="stable")[:LIKELIEST]
    return tuple((labels[place], float(probabilities[place])) for place in best.tolist())


def _sentence(reason: str, size: int, classes: Likeliest, score: float, learning: ActiveLearningState) -> str:
    if reason == "cluster":
        near = f"it is typical of {size:,} nodes that no labelled node is nearer to"
        return near if size > 1 else "the nodes like it are nearer to a label or to another suggestion"
    if reason == "unknown":
        lower = "nearly all" if score > 0.99 else f"{100 * score:.0f} % of the"
        return f"it looks like none of the known classes: {lower} known nodes have a lower unknown score"
    if reason == "uncovered":
        return "few of the nodes like it have a label" if learning.labelled.size else "no node has a label yet"
    if reason == "between" and len(classes) > 1:
        (first, one), (second, two) = classes[:2]
        return f"it lies between {first} ({100 * one:.0f} %) and {second} ({100 * two:.0f} %)"
    return "it was drawn at random" if reason == "random" else "it could be of more than one class"


def _represented(learning: ActiveLearningState, rows: np.ndarray) -> np.ndarray:
    """Return (w,) numbers of candidates that are more similar to a query than to others and to labelled nodes, with
    itself.
    """
    if not rows.size:
        return np.zeros(0, dtype=np.int64)
    random, candidates = np.random.default_rng(0), learning.candidates
    sample = candidates if candidates.size <= COUNTED else random.choice(candidates, COUNTED, replace=False)
    labelled = learning.labelled
    labelled = labelled if labelled.size <= LABELLED else random.choice(labelled, LABELLED, replace=False)
    values = unit_rows(principal_components(learning.vectors[np.concatenate([sample, rows, labelled])]))
    others = values[sample.size :]
    counts = np.bincount(likeliest_of(values[: sample.size], others)[0], minlength=len(others))[: len(rows)]
    return np.maximum(1, np.round(counts * candidates.size / sample.size)).astype(np.int64)
