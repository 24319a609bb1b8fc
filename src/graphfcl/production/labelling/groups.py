"""Find groups of similar nodes that look like none of the known classes, and describe them in the user's words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from graphfcl.active.clusters import clusters, principal_components, unit_rows
from graphfcl.active.grouping import Balls, Crowd, PurityModel, TightGroup, core_size, tight_groups
from graphfcl.errors import InputError, quoted, shown
from graphfcl.graph import Standardisation
from graphfcl.graph.ids import ClassLabel, listed
from graphfcl.production.answers.row_values import node_rows
from graphfcl.production.graph import ModelGraph
from graphfcl.production.labelling.node_vectors import vectors_of
from graphfcl.production.labelling.stop_words import explains
from graphfcl.production.labels.label_store import LabelStore
from graphfcl.production.model.held_out_run import COMPONENTS
from graphfcl.production.model.parts import seed_of, whole_number
from graphfcl.production.model.state import ModelState, RowAnswers

MOST = 20_000  # most unknown nodes that are searched for groups; a random sample of more
CLASSES = 3  # least number of classes whose labelled nodes show how pure tight groups are
TYPICAL = 5  # typical members of a group
WORDS = 6  # most words of a group
OFTEN = 0.3  # a word is common in a group if at least this share of its nodes has it,
TIMES = 4.0  # and this share is at least so many times the share among all nodes
FAR = 1.0  # a number is high or low if its mean differs from the mean of all nodes by so many standard deviations
LINKED = 3  # most classes of neighbours


@dataclass(frozen=True)
class Group:
    """Unlabelled nodes that probably belong to one class that has no name yet.

    If more than 20,000 nodes look unknown, groups are searched among a random sample of 20,000 of them. Members are
    then members of that sample.

    Args:
        number: Rank of the group; 1 is the tightest.
        nodes: Ids of the members, most typical first.
        size: Number of members.
        typical: Ids of up to 5 members from different parts of the group.
        words: Features that are common in the group and rare elsewhere; empty if features have no names.
        neighbours: Classes of labelled nodes that members link to, most frequent first.
        shares: Share of each of these classes in the links.
        estimated_purity: Estimated share of the group's largest true class. It is the purity of equally tight groups of
            held-out classes, measured during the fit. In a model without a held-out run it is the purity of equally
            tight neighbourhoods of labelled nodes.
        why: One sentence that describes the group.

    Examples:
        >>> from graphfcl import GraphClassifier, load_dataset
        >>> graph, _ = load_dataset("synthetic:nodes=400,edges=2000,classes=6,features=30,signal=1.0")
        >>> model = GraphClassifier("sgc-ridge").fit(graph, hide_classes=["class-01"])
        >>> group = model.groups(1)[0]
        >>> len(group.typical)
        5
        >>> "new class" in model.name_group(group, "new class").classes_
        True
    """

    number: int
    nodes: tuple[Any, ...]
    size: int
    typical: tuple[Any, ...]
    words: tuple[str, ...]
    neighbours: tuple[ClassLabel, ...]
    shares: tuple[float, ...]
    estimated_purity: float
    why: str

    @property
    def reason(self) -> str:
        """Reason that is stored with the labels if the group is taught as a class."""
        return f"member of a group of {self.size} similar nodes, estimated purity {100 * self.estimated_purity:.0f} %"

    def as_json(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {
            "number": self.number,
            "size": self.size,
            "estimated_purity": round(self.estimated_purity, 4),
            "why": self.why,
            "typical": list(self.typical),
            "words": list(self.words),
            "neighbours": [
                {"class": name, "share": round(share, 4)}
                for name, share in zip(self.neighbours, self.shares, strict=True)
            ],
            "nodes": list(self.nodes),
        }


def find_groups(state: ModelState, count: int, seed: int) -> tuple[Group, ...]:
    """Find at most ``count`` groups, the tightest first; none if too few nodes look unknown."""
    count, seed = whole_number(count, "the number of groups", 5), seed_of(seed)
    if count < 1:
        raise InputError(f"the number of groups is {count}: ask for at least one.")
    parts, random = state.parts, np.random.default_rng([seed, 18])
    visible, labels = parts.graph.visible, parts.label_store
    given = labels.without_accepted()
    labelled = visible.rows(given.nodes)
    is_unknown = RowAnswers(state).unknown_scores() > state.calibration().threshold
    rows = node_rows(visible)
    unknown = np.setdiff1d(rows[is_unknown[rows]], visible.rows(labels.nodes))
    sample = _drawn(unknown, MOST, random)
    classes = given.class_of_column()[given.columns]
    taught = _drawn(_whole_classes(classes, sample.size, random), MOST, random)
    if not sample.size:
        return ()
    measured = parts.calibration.held_out.group_purity
    rows = sample if measured else np.concatenate([sample, labelled[taught]])
    values = unit_rows(principal_components(vectors_of(state)(rows), COMPONENTS, seed=seed))
    crowd = Crowd.of(values[: sample.size], visible.neighbours_at(sample), sample)
    if measured:
        model = PurityModel.from_json(measured)
    else:
        taught_crowd = Crowd.of(values[sample.size :], visible.neighbours_at(labelled[taught]), labelled[taught])
        model = PurityModel.learned(Balls.of(taught_crowd, core_size(sample.size)), classes[taught])
    statistics = FeatureStatistics.of(parts.graph)
    drawn = f", of the {sample.size:,} drawn out of {unknown.size:,}," if sample.size < unknown.size else ""
    return tuple(
        _described(state, number, group, crowd, sample, statistics, drawn)
        for number, group in enumerate(tight_groups(crowd, model, count), 1)
    )


def _drawn(rows: np.ndarray, most: int, random: np.random.Generator) -> np.ndarray:
    """Return all rows, or ``most`` of them at random, ascending."""
    return rows if rows.size <= most else np.sort(random.choice(rows, most, replace=False))


def _whole_classes(classes: np.ndarray, count: int, random: np.random.Generator) -> np.ndarray:
    """Return places of all nodes of randomly chosen classes, until there are at least ``count``.

    Classes are taken completely, so that links and neighbours within them are present, as among the nodes that look
    unknown. ``classes``: (m,) classes of the labelled nodes.
    """
    sizes = np.bincount(classes)
    order = random.permutation(np.flatnonzero(sizes))
    enough = max(CLASSES, int(np.searchsorted(np.cumsum(sizes[order]), count)) + 1)
    return np.flatnonzero(np.isin(classes, order[:enough]))


def _described(
    state: ModelState,
    number: int,
    group: TightGroup,
    crowd: Crowd,
    sample: np.ndarray,
    statistics: "FeatureStatistics",
    drawn: str,
) -> Group:
    """Describe a group. ``statistics``: features of all nodes. ``drawn``: note that members come from a sample."""
    graph, labels = state.parts.graph, state.parts.label_store
    rows = sample[group.rows]
    inside = float(crowd.links[group.rows][:, group.rows].sum() / max(1.0, crowd.degrees[group.rows].sum()))
    typical = rows[spread_typical(crowd.values[group.rows], TYPICAL)]
    why = (
        f"its {rows.size} nodes{drawn} look like none of the {len(labels.classes)} known classes and like each "
        f"other, {100 * inside:.0f} % of their links stay among them, and nodes as alike whose class is known are "
        f"{100 * group.estimated_purity:.0f} % of one class"
    )
    neighbours, shares = linked_classes(graph, labels, rows)
    return Group(
        number=number,
        nodes=tuple(graph.ids_at(rows).tolist()),
        size=int(rows.size),
        typical=tuple(graph.ids_at(typical).tolist()),
        words=common_words(graph, rows, statistics),
        neighbours=neighbours,
        shares=shares,
        estimated_purity=group.estimated_purity,
        why=why,
    )


def spread_typical(values: np.ndarray, count: int) -> np.ndarray:
    """Return (k,) rows from different parts of a group: the row nearest to the mean of each of k clusters.

    The largest cluster comes first. Nodes near the mean of the whole group teach a class less well, because they are
    too similar. ``values``: (n, d), rows of unit length.
    """
    cluster = clusters(values, count)
    sizes = np.bincount(cluster)
    means = np.zeros((sizes.size, values.shape[1]), dtype=np.float64)
    np.add.at(means, cluster, values)
    means /= sizes[:, None]
    away = ((values - means[cluster]) ** 2).sum(axis=1)
    order = np.lexsort((away, cluster))
    nearest = order[np.cumsum(sizes) - sizes]
    return nearest[np.argsort(-sizes, kind="stable")]


def supports_of_group(state: ModelState, group: Group, count: int, nodes: Sequence[Any] | None = None) -> list[Any]:
    """Return ids of typical members without a label: the ones that were shown, or others if those do not suffice.

    Raises an error if no member is left. ``nodes``: members to take instead, all of them.
    """
    if not isinstance(group, Group):
        raise InputError(f"{shown(group)} is not a group: give a group that groups() returned.")
    graph = state.parts.graph
    if nodes is not None:
        return _members(group, nodes)
    typical = _without_label(state, group.typical)
    if len(group.typical) >= count and typical.size == len(group.typical):
        return graph.ids_at(typical[:count]).tolist()
    rows = _without_label(state, group.nodes)
    if not rows.size:
        raise InputError(
            f"every node of group {group.number} has a label by now or was removed: compute the groups again; "
            "nothing was learned."
        )
    values = unit_rows(principal_components(vectors_of(state)(rows), COMPONENTS))
    return graph.ids_at(rows[spread_typical(values, count)]).tolist()


def _members(group: Group, nodes: Sequence[Any]) -> list[Any]:
    """Return the nodes as the group stores them; raises an error if one is not a member."""
    by_text = {str(node): node for node in group.nodes}
    others = [node for node in nodes if str(node) not in by_text]
    if others or not len(nodes):
        what = f"node {quoted(others[0])} is not a member of group {group.number}" if others else "no member is given"
        raise InputError(f"{what}: give nodes that the group lists; nothing was learned.")
    return list(dict.fromkeys(by_text[str(node)] for node in nodes))


def _without_label(state: ModelState, nodes: Sequence[Any]) -> np.ndarray:
    """Return (m,) rows of the nodes that exist and have no label."""
    graph = state.parts.graph
    rows = graph.rows_of_ids(listed(nodes))
    rows = rows[rows >= 0]
    return rows[~np.isin(graph.numbers_at(rows), state.parts.label_store.nodes)]


@dataclass(frozen=True, eq=False)
class FeatureStatistics:
    """Statistics of the features of all nodes, computed once for all groups; None if features have no names.

    Attributes:
        shares: (d,) for sparse features, the share of nodes that have each.
        dense: Means and standard deviations of dense features.
    """

    shares: np.ndarray | None = None
    dense: Standardisation | None = None

    @classmethod
    def of(cls, graph: ModelGraph) -> "FeatureStatistics":
        """Compute the statistics; features are read in blocks of rows."""
        visible = graph.visible
        if graph.columns.names is None or not visible.feature_count:
            return cls()

        def blocks() -> Iterator[Any]:
            rows = node_rows(visible)
            cuts = [stop for _, stop in visible.row_blocks()[:-1]]
            return (visible.features_at(part) for part in np.split(rows, np.searchsorted(rows, cuts)))

        if not visible.sparse_features:
            return cls(dense=Standardisation.fit_blocks(blocks))
        return cls(shares=np.sum([_counts(block) for block in blocks()], axis=0) / max(1, visible.node_count))


def common_words(graph: ModelGraph, rows: np.ndarray, statistics: FeatureStatistics) -> tuple[str, ...]:
    """Return features that are common among some nodes and rare elsewhere; none if features have no names.

    Sparse features are ranked by p log(p / q), with p the share of these nodes that have the feature, and q the share
    of all nodes. Dense features are chosen by the distance of their mean from the mean of all nodes: "high price".
    """
    if not rows.size:
        return ()
    features = graph.visible.features_at(rows)
    if statistics.dense is not None:
        return _far_numbers(graph, features, statistics.dense)
    if statistics.shares is None:
        return ()
    inside = _counts(features) / rows.size
    worth = inside * np.log(np.maximum(inside, 1e-12) / np.maximum(statistics.shares, 1e-12))
    worth = np.where((inside >= OFTEN) & (inside >= TIMES * statistics.shares), worth, 0.0)
    best = np.argsort(-worth, kind="stable")[: 2 * WORDS]
    names = [graph.columns.name(column) for column in best[worth[best] > 0].tolist()]
    return tuple(name for name in names if explains(name))[:WORDS]


def _counts(features: sparse.csr_array) -> np.ndarray:
    """Return (d,) numbers of nodes that have each feature."""
    return np.bincount(features.indices[features.data != 0], minlength=features.shape[1])


def _far_numbers(graph: ModelGraph, features: np.ndarray, statistics: Standardisation) -> tuple[str, ...]:
    away, deviations = features.mean(axis=0, dtype=np.float64) - statistics.mean, statistics.deviation
    away = np.divide(away, deviations, out=np.zeros_like(deviations), where=deviations > 1e-12)
    best = np.argsort(-np.abs(away), kind="stable")[:WORDS]
    return tuple(
        f"{'high' if away[column] > 0 else 'low'} {graph.columns.name(column)}"
        for column in best.tolist()
        if abs(away[column]) >= FAR
    )


def linked_classes(
    graph: ModelGraph, labels: LabelStore, rows: np.ndarray
) -> tuple[tuple[ClassLabel, ...], tuple[float, ...]]:
    """Return classes of labelled nodes that some nodes link to, and their shares of these links, largest first."""
    position = np.full(graph.visible.row_count, -1, dtype=np.int64)
    position[graph.visible.rows(labels.nodes)] = labels.class_of_column()[labels.columns]
    ends = position[graph.visible.neighbours_at(rows).indices]
    counts = np.bincount(ends[ends >= 0], minlength=len(labels.classes))
    best = [each for each in np.argsort(-counts, kind="stable")[:LINKED].tolist() if counts[each]]
    return tuple(labels.labels[each] for each in best), tuple((counts[best] / max(1, counts.sum())).tolist())
