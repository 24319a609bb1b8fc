"""What is told of nodes and classes, as JSON values. Ids travel as texts, integer classes as numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphfcl.errors import InputError
from graphfcl.graph.ids import ClassLabel
from graphfcl.production.answers.answers import few_shot_classes
from graphfcl.production.labelling.groups import Group
from graphfcl.production.labelling.suggestions import Suggestion
from graphfcl.service.changes import as_sent, sessions_of
from graphfcl.service.neighbourhood import neighbourhood
from graphfcl.service.snapshots import Snapshot

LIKELIEST, FEATURES, REASONS = 5, 20, 8
LOST = 0.05  # recall that a class may lose without a word about it


def short_card(snapshot: Snapshot, row: int) -> dict[str, Any]:
    """A node in a list."""
    return {"id": snapshot.id_at(row), "label": snapshot.label_at(row)}


def node_card(snapshot: Snapshot, row: int) -> dict[str, Any]:
    """A node, what the model thinks of it, and its features."""
    rows = np.array([row])
    said = snapshot.opinions(rows)
    return {
        **short_card(snapshot, row),
        "classes": likeliest(snapshot.classes, said.probabilities[0]),
        "unknown": bool(said.unknown[0]),
        "unknown_score": float(said.unknown_scores[0]),
        "degree": int(snapshot.graph.visible.neighbours_at(rows).nnz),
        "features": _features(snapshot, row),
    }


def likeliest(classes: Sequence[ClassLabel], probabilities: np.ndarray) -> list[dict[str, Any]]:
    """The likeliest classes, first first."""
    order = np.argsort(-probabilities, kind="stable")[:LIKELIEST]
    return [{"name": classes[place], "probability": float(probabilities[place])} for place in order.tolist()]


def _features(snapshot: Snapshot, row: int) -> list[dict[str, Any]]:
    """The largest features of a node, as the learner sees them."""
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
    """The nodes around a node, with positions to draw them at. unknown: a node looks like none of the classes."""
    found = neighbourhood(snapshot.graph.visible, row, limit)
    said = snapshot.opinions(found.rows)
    nodes = [
        {
            "id": node,
            "label": snapshot.label_at(each),
            "predicted": snapshot.classes[best],
            "unknown": is_unknown,
            "x": round(x, 4),
            "y": round(y, 4),
            "hops": hops,
        }
        for node, each, best, is_unknown, (x, y), hops in zip(
            snapshot.ids_at(found.rows),
            found.rows.tolist(),
            said.probabilities.argmax(axis=1).tolist(),
            said.unknown.tolist(),
            found.positions.tolist(),
            found.hops.tolist(),
            strict=True,
        )
    ]
    return {"nodes": nodes, "edges": found.edges.tolist()}


def explanation_card(snapshot: Snapshot, row: int) -> dict[str, Any]:
    """Why a node gets its class, in sentences and figures; some methods cannot say why."""
    node, said = snapshot.graph.ids_at(np.array([row]))[0], snapshot.opinions(np.array([row]))
    classes = likeliest(snapshot.classes, said.probabilities[0])
    summary = [_first_sentence(classes, bool(said.unknown[0])), *_around(snapshot, row)]
    words: list[dict[str, Any]] = []
    shares: list[dict[str, Any]] = []
    try:
        found = snapshot.model.explain(node, top=REASONS)
    except InputError as error:
        summary.append(f"More cannot be said: {error}")
    else:
        words = [{"name": str(name), "weight": float(value)} for name, value in found["features"].items()]
        shares = [{"id": str(each["node"]), "share": float(each["share"])} for each in found["neighbours"]]
        summary += _word_sentence(words, classes)
    return {"id": str(node), "summary": summary, "classes": classes, "words": words, "neighbours": shares}


def _first_sentence(classes: list[dict[str, Any]], unknown: bool) -> str:
    first, probability = classes[0]["name"], f"{classes[0]['probability']:.2f}"
    if unknown:
        return f"It looks like none of the known classes; the likeliest of them is {first!r} ({probability})."
    said = f"The model calls it {first!r} with probability {probability}"
    if len(classes) > 1:
        said += f"; next comes {classes[1]['name']!r} with {classes[1]['probability']:.2f}"
    return f"{said}."


def _around(snapshot: Snapshot, row: int) -> list[str]:
    """A sentence about the labels of the nodes next to it."""
    near = snapshot.graph.visible.neighbours_at(np.array([row])).indices
    if not near.size:
        return ["It has no edge."]
    labels = snapshot.labels[near]
    counts = np.bincount(labels[labels >= 0], minlength=len(snapshot.classes))
    if not counts.any():
        none = f"None of the {near.size:,} nodes next to it has a label."
        return [none if near.size > 1 else "The only node next to it has no label."]
    first = int(counts.argmax())
    if near.size == 1:
        return [f"The only node next to it is labelled {snapshot.classes[first]!r}."]
    if counts.sum() == 1:
        return [f"Of the {near.size:,} nodes next to it 1 has a label, {snapshot.classes[first]!r}."]
    return [
        f"Of the {near.size:,} nodes next to it {counts.sum():,} have a label, most often {snapshot.classes[first]!r} "
        f"({counts[first]:,})."
    ]


def _word_sentence(words: list[dict[str, Any]], classes: list[dict[str, Any]]) -> list[str]:
    speaking = [word["name"] for word in words if word["weight"] > 0][:3]
    if not speaking or not classes:
        return []
    return [f"What speaks most for {classes[0]['name']!r}: {', '.join(map(repr, speaking))}."]


def class_cards(snapshot: Snapshot) -> list[dict[str, Any]]:
    """Every class: labels, the version it came with (0: the fit), its recall and the one before the last change."""
    after, before = snapshot.recalls
    sizes, sessions = snapshot.class_sizes().tolist(), sessions_of(snapshot.changes)
    cards = []
    label_store = snapshot.model.label_store_
    few = few_shot_classes(label_store).tolist()
    for name, labels, is_few in zip(label_store.classes, sizes, few, strict=True):
        card = {
            "name": as_sent(label_store.label(name)),
            "labels": labels,
            "session": sessions.get(name) if is_few else 0,
            "recall": after.get(name),
            "recall_before": before.get(name),
        }
        if name in after and name in before and before[name] - after[name] > LOST:
            lost = 100 * (before[name] - after[name])
            card["warning"] = f"the last change cost it {lost:.0f} points of recall"
        cards.append(card)
    return cards


def prediction_columns(snapshot: Snapshot, ids: Sequence[Any]) -> dict[str, Any]:
    """What the model says of some nodes, in columns."""
    found = snapshot.model.prediction_columns(ids)
    return {
        "ids": [str(each) for each in found["node"].tolist()],
        "classes": [as_sent(label) for label in found["class"].tolist()],
        "probabilities": found["probability"].tolist(),
        "unknown": found["unknown"].tolist(),
        "unknown_score": found["unknown_score"].tolist(),
    }


def suggestion_cards(found: Sequence[Suggestion]) -> list[dict[str, Any]]:
    """Nodes worth labelling."""
    return [
        {
            "id": str(each.node),
            "reason": each.reason,
            "why": each.why,
            "classes": _named(each.classes, "probability"),
            "unknown": bool(each.unknown),
            "unknown_score": float(each.unknown_score),
        }
        for each in found
    ]


def group_cards(found: Sequence[Group]) -> list[dict[str, Any]]:
    """Groups without a name."""
    return [
        {
            "number": each.number,
            "size": each.size,
            "typical": [str(node) for node in each.typical],
            "words": list(each.words),
            "neighbours": _named(each.neighbours, "share"),
            "estimated_purity": float(each.estimated_purity),
            "why": each.why,
            "nodes": [str(node) for node in each.nodes],
        }
        for each in found
    ]


def _named(pairs: Sequence[tuple[ClassLabel, float]], figure: str) -> list[dict[str, Any]]:
    return [{"name": as_sent(label), figure: float(value)} for label, value in pairs]
