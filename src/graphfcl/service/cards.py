"""Nodes, classes, suggestions and groups as JSON values. Ids are strings, integer classes are numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphfcl.errors import InputError, quoted
from graphfcl.graph.ids import ClassLabel
from graphfcl.graph.interfaces import VisibleNodes
from graphfcl.production.labelling.groups import Group
from graphfcl.production.labelling.stop_words import explains
from graphfcl.production.labelling.suggestions import Suggestion
from graphfcl.production.model.card import gain_text
from graphfcl.production.model.recalls import is_loss, measured_recalls
from graphfcl.service.changes import as_sent, sessions_of
from graphfcl.service.snapshots import Snapshot

LIKELIEST, FEATURES, REASONS = 5, 20, 8
GOLDEN = np.pi * (3 - np.sqrt(5))  # the golden angle: nodes on a ring do not overlap
STEPS = 60
HOPS = 2
COUNTED = 5_000  # nodes within two hops are not counted around a node with more neighbours


def short_card(snapshot: Snapshot, row: int) -> dict[str, Any]:
    """Return a node for a list."""
    return {"id": snapshot.ids_at(np.array([row]))[0], "label": snapshot.label_at(row)}


def node_card(snapshot: Snapshot, row: int) -> dict[str, Any]:
    """Return a node with its prediction and features."""
    rows = np.array([row])
    predicted = snapshot.predictions(rows)
    return {
        **short_card(snapshot, row),
        "statements": statement_cards(snapshot, row),
        "classes": likeliest(snapshot.classes, predicted.probabilities[0]),
        "unknown": bool(predicted.unknown[0]),
        "unknown_score": float(predicted.unknown_scores[0]),
        "degree": int(snapshot.graph.visible.neighbours_at(rows).nnz),
        "features": features_of(snapshot, row),
    }


def statement_cards(snapshot: Snapshot, row: int) -> list[dict[str, Any]]:
    """Return who gave the label of a node, when, and what is stored with it, oldest first."""
    number = int(snapshot.graph.numbers_at(np.array([row]))[0])
    return [each.as_json() for each in snapshot.model.label_store_.statements.get(number, ())]


def likeliest(classes: Sequence[ClassLabel], probabilities: np.ndarray) -> list[dict[str, Any]]:
    """Return the most probable classes, best first."""
    order = np.argsort(-probabilities, kind="stable")[:LIKELIEST]
    return [{"name": classes[place], "probability": float(probabilities[place])} for place in order.tolist()]


def features_of(snapshot: Snapshot, row: int) -> list[dict[str, Any]]:
    """Return the largest features of a node, as the learner sees them."""
    features = snapshot.graph.visible.features_at(np.array([row]))
    if isinstance(features, np.ndarray):
        columns = np.flatnonzero(features[0])
        values = features[0][columns]
    else:
        columns, values = features.indices, features.data
    order = np.argsort(-np.abs(values), kind="stable")[:FEATURES]
    return [
        {"name": snapshot.graph.columns.name(int(columns[place])), "value": float(values[place])}
        for place in order.tolist()
    ]


def neighbours_card(snapshot: Snapshot, row: int, limit: int) -> dict[str, Any]:
    """Return the nodes around a node, with positions to draw them at, and edges as pairs of positions in the list."""
    rows, hops = _nodes_around(snapshot.graph.visible, row, limit)
    block = snapshot.graph.visible.neighbours_at(rows)[:, rows].tocoo()
    edges = np.stack([block.row, block.col], axis=1)[block.row < block.col]
    predicted = snapshot.predictions(rows)
    columns = {
        "id": snapshot.ids_at(rows),
        "label": [snapshot.label_at(each) for each in rows.tolist()],
        "predicted": [snapshot.classes[best] for best in predicted.probabilities.argmax(axis=1).tolist()],
        "unknown": predicted.unknown.tolist(),
        **dict(zip("xy", _layout(hops, edges).round(4).T.tolist(), strict=True)),
        "hops": hops.tolist(),
    }
    nodes = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return {"nodes": nodes, "edges": edges.tolist(), "total": _count_around(snapshot.graph.visible, row)}


def _count_around(visible: VisibleNodes, row: int) -> int | None:
    """Count the nodes within two hops, the node itself included; None if it has too many neighbours."""
    first = visible.neighbours_at(np.array([row])).indices
    if first.size > COUNTED:
        return None
    return int(np.unique(np.concatenate([[row], first, visible.neighbours_at(first).indices])).size)


def _nodes_around(visible: VisibleNodes, row: int, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows around a node, which comes first, and their distances in hops. Both have shape (k,), k ≤ limit.

    Neighbours come first, by descending edge weight, then the neighbours of neighbours.
    """
    rows, hops = np.array([row]), np.zeros(1, dtype=np.int64)
    frontier = rows
    for hop in range(1, HOPS + 1):
        near = visible.neighbours_at(frontier)
        weight = np.bincount(near.indices, weights=np.abs(near.data)) if near.nnz else np.zeros(0)
        new = np.setdiff1d(np.flatnonzero(weight), rows)
        frontier = new[np.argsort(-weight[new], kind="stable")][: limit - rows.size]
        rows, hops = np.concatenate([rows, frontier]), np.concatenate([hops, np.full(frontier.size, hop)])
        if rows.size == limit or frontier.size == 0:
            break
    return rows, hops


def _layout(hops: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Lay out nodes by Fruchterman and Reingold, "Graph drawing by force-directed placement", 1991.

    Nodes start on rings by their distance in hops. The result is deterministic, with shape (k, 2) and values from -1
    to 1; the first node stays in the middle.
    """
    count = hops.size
    turn = np.arange(count) * GOLDEN
    positions = hops[:, None] * np.stack([np.cos(turn), np.sin(turn)], axis=1) / HOPS
    ideal = np.sqrt(1.0 / count)
    for step in range(STEPS if count > 1 else 0):
        apart = positions[:, None] - positions[None]
        far = np.maximum(np.sqrt((apart**2).sum(axis=2)), 1e-6)
        move = (apart * (ideal / far)[:, :, None] ** 2).sum(axis=1)
        along = positions[edges[:, 0]] - positions[edges[:, 1]]
        pull = along * (np.sqrt((along**2).sum(axis=1)) / ideal)[:, None]
        np.subtract.at(move, edges[:, 0], pull)
        np.add.at(move, edges[:, 1], pull)
        size = np.maximum(np.sqrt((move**2).sum(axis=1)), 1e-9)
        positions = positions + move / size[:, None] * np.minimum(size, 0.1 * (1 - step / STEPS))[:, None]
        positions -= positions[0]
    return positions / max(float(np.abs(positions).max(initial=0.0)), 1e-9)


def explanation_card(snapshot: Snapshot, row: int) -> dict[str, Any]:
    """Explain a prediction in sentences and numbers. Some methods give no numbers."""
    node, predicted = snapshot.graph.ids_at(np.array([row]))[0], snapshot.predictions(np.array([row]))
    classes = likeliest(snapshot.classes, predicted.probabilities[0])
    summary = [_prediction_sentence(classes, bool(predicted.unknown[0])), _neighbour_sentence(snapshot, row)]
    words: list[dict[str, Any]] = []
    shares: list[dict[str, Any]] = []
    try:
        explanation = snapshot.model.explain(node, top=2 * REASONS)
    except InputError as error:
        summary.append(f"There is no further explanation: {error}")
    else:
        features = [(str(name), float(value)) for name, value in explanation["features"].items() if explains(name)]
        words = [{"name": name, "weight": value} for name, value in features[:REASONS]]
        listed = explanation["neighbours"][:REASONS]
        shares = [{"id": str(each["node"]), "share": float(each["share"])} for each in listed]
        decisive = [repr(word["name"]) for word in words if word["weight"] > 0][:3]
        if decisive:
            summary.append(f"What speaks most for {_named_class(classes[0]['name'])}: {', '.join(decisive)}.")
    return {"id": str(node), "summary": summary, "classes": classes, "words": words, "neighbours": shares}


def _named_class(name: ClassLabel) -> str:
    """Quote a class name for a sentence; long names are shortened."""
    return quoted(name) if isinstance(name, str) else repr(name)


def _prediction_sentence(classes: list[dict[str, Any]], unknown: bool) -> str:
    first, probability = classes[0]["name"], f"{classes[0]['probability']:.2f}"
    if unknown:
        return (
            f"It looks like none of the known classes; the likeliest of them is {_named_class(first)} ({probability})."
        )
    second = (
        f"; next comes {_named_class(classes[1]['name'])} with {classes[1]['probability']:.2f}"
        if len(classes) > 1
        else ""
    )
    return f"The model calls it {_named_class(first)} with probability {probability}{second}."


def _neighbour_sentence(snapshot: Snapshot, row: int) -> str:
    """Write a sentence about the labels of the neighbours."""
    near = snapshot.graph.visible.neighbours_at(np.array([row])).indices
    if not near.size:
        return "It has no edge."
    labels = snapshot.labels[near]
    counts = np.bincount(labels[labels >= 0], minlength=len(snapshot.classes))
    first, labelled = snapshot.classes[int(counts.argmax())], counts.sum()
    if near.size == 1:
        return f"The only node next to it {f'is labelled {_named_class(first)}' if labelled else 'has no label'}."
    if not labelled:
        return f"None of the {near.size:,} nodes next to it has a label."
    if labelled == 1:
        return f"Of the {near.size:,} nodes next to it 1 has a label, {_named_class(first)}."
    most = f"{_named_class(first)} ({counts.max():,})"
    return f"Of the {near.size:,} nodes next to it {labelled:,} have a label, most often {most}."


def class_cards(snapshot: Snapshot) -> tuple[list[dict[str, Any]], str]:
    """Return all classes as JSON values, and a sentence that names the class which would gain most from more labels."""
    after, before = snapshot.recalls
    store, nodes = snapshot.model.label_store_, snapshot.graph.node_count
    measured, earlier = (measured_recalls(store, {"classes": each}, nodes) for each in (after, before))
    sessions = sessions_of(snapshot.changes)
    table, cards = snapshot.model.class_table(), []
    for name, each in zip(snapshot.model.label_store_.classes, table, strict=True):
        card = {
            "name": as_sent(each.name),
            "labels": each.labels + each.validation,
            "session": sessions.get(name) if each.few_shot else 0,
            "recall": after.get(name),
            "measured": measured[name].as_json() if name in measured else None,
            "recall_before": before.get(name),
            "gain": each.gain,
        }
        if not each.few_shot and name in measured and name in earlier and is_loss(earlier[name], measured[name]):
            card["warning"] = f"recognised less often since the last change: {measured[name]}, before {earlier[name]}"
        cards.append(card)
    return cards, gain_text(table)


def prediction_columns(snapshot: Snapshot, ids: Sequence[Any]) -> dict[str, Any]:
    """Return predictions for some nodes, in columns."""
    columns = snapshot.model.prediction_columns(ids)
    return {
        "ids": [str(each) for each in columns["node"].tolist()],
        "classes": [as_sent(label) for label in columns["class"].tolist()],
        "probabilities": columns["probability"].tolist(),
        "unknown": columns["unknown"].tolist(),
        "unknown_score": columns["unknown_score"].tolist(),
    }


def suggestion_cards(suggestions: Sequence[Suggestion]) -> list[dict[str, Any]]:
    """Return suggestions as JSON values."""
    return [
        {
            "id": str(each.node),
            "reason": each.reason,
            "why": each.why,
            "classes": _named(each.classes, "probability", each.probabilities),
            "unknown": bool(each.unknown),
            "unknown_score": float(each.unknown_score),
        }
        for each in suggestions
    ]


def group_cards(groups: Sequence[Group]) -> list[dict[str, Any]]:
    """Return groups of unknown nodes as JSON values."""
    return [
        {
            "number": each.number,
            "size": each.size,
            "typical": [str(node) for node in each.typical],
            "words": list(each.words),
            "neighbours": _named(each.neighbours, "share", each.shares),
            "estimated_purity": float(each.estimated_purity),
            "why": each.why,
            "nodes": [str(node) for node in each.nodes],
        }
        for each in groups
    ]


def _named(classes: Sequence[ClassLabel], figure: str, values: Sequence[float]) -> list[dict[str, Any]]:
    return [{"name": as_sent(label), figure: value} for label, value in zip(classes, values, strict=True)]
