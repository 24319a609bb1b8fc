"""Counts and sizes of a model, and signs that it has aged since its last fit, so that a refit is due."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.production.answers.answers import few_shot_classes
from graphfcl.production.answers.calibration import unknown_share
from graphfcl.production.labels.history import Entry, lineage, written_by_graphfcl
from graphfcl.production.labels.label_store import LabelStore
from graphfcl.production.model.parts import Configuration
from graphfcl.production.model.state import ModelState

# Limits of the signs. A refit is due if one of them is exceeded.
MOST_UNKNOWN_RISE = 0.05  # rise in the share of nodes that are called unknown
MOST_NEW_WORDS_RISE = 0.10  # rise in the share of words outside the vocabulary, from the fit to nodes added later
MOST_LOSING_CLASSES = 0.10  # share of classes that lost recall
MOST_CONFIDENCE_SHIFT = 0.10  # shift of the mean probability on validation nodes, in either direction

CONFIDENCE = "mean probability on validation nodes"
FITS = ("fit", "refit")
MOST_NAMED = 5  # classes that a sign names
FILES = {"versions": "model.sqlite", "cache": "cache.sqlite"}


@dataclass(frozen=True)
class Sign:
    """One sign of age: a measurement and its limit.

    Attributes:
        what: Name of the measurement.
        figure: The measurement in words.
        limit: Its limit in words.
        value: The measurement as a number; None if it was not measured.
        most: The limit as a number.
    """

    what: str
    figure: str
    limit: str
    value: float | None
    most: float

    @property
    def over(self) -> bool:
        """Whether the measurement exceeds its limit."""
        return self.value is not None and self.value > self.most

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "over": self.over}


def signs_of_age(
    changes: Sequence[Entry], configuration: Configuration, *, label_store: LabelStore | None, unknown: float | None
) -> list[Sign]:
    """Compare the model with what it was after its last fit.

    Args:
        changes: The changes that led to the model, oldest first.
        configuration: The parameters of the model.
        label_store: The labels of the model. None: leave out the sign that counts labels.
        unknown: Share of nodes that are called unknown; None if it is not known.

    Returns:
        All signs, exceeded or not.
    """
    fits = [place for place, entry in enumerate(changes) if entry["what"] in FITS]
    since_fit = changes[fits[-1] if fits else 0 :]
    first, last = next(_accuracies(since_fit), {}), last_accuracy(since_fit)
    signs = [
        _shift("nodes called unknown", first.get("unknown"), unknown, MOST_UNKNOWN_RISE),
        *_new_words(since_fit),
        _losing_classes(since_fit, last, configuration.max_loss),
        _shift(CONFIDENCE, first.get("confidence"), last.get("confidence"), MOST_CONFIDENCE_SHIFT, both_ways=True),
    ]
    return signs if label_store is None else [*signs, _outgrown_classes(label_store, configuration.shot)]


def _accuracies(changes: Iterable[Entry]) -> Iterator[dict[str, Any]]:
    return (entry["accuracy"] for entry in changes if entry.get("accuracy"))


def last_accuracy(changes: Sequence[Entry]) -> dict[str, Any]:
    """Return the newest accuracy in some changes; empty if none was measured."""
    return next(_accuracies(reversed(changes)), {})


def verdict(signs: Sequence[Sign]) -> str:
    """Say in words whether a refit is due, and which signs exceed their limits."""
    exceeded = [sign.what for sign in signs if sign.over]
    return f"a refit is due ({', '.join(exceeded)})" if exceeded else "no refit is due"


def _shift(what: str, first: float | None, last: float | None, most: float, *, both_ways: bool = False) -> Sign:
    """Check whether a share has risen by more than ``most``; with ``both_ways``, whether it has changed by more."""
    figure, at_fit = ("not measured" if share is None else f"{share:.1%}" for share in (last, first))
    rise = None if first is None or last is None else round(last - first, 6)
    value = abs(rise) if rise is not None and both_ways else rise
    limit = f"{100 * most:g} points {'above or below the value' if both_ways else 'more than'} after the fit"
    return Sign(what, f"{figure}, after the fit {at_fit}", limit, value, most)


def _new_words(changes: Sequence[Entry]) -> list[Sign]:
    """Check the share of words outside the vocabulary. Return no sign if the graph was not made from text."""
    counts = [(entry["what"], entry["words"], entry["unknown_words"]) for entry in changes if "words" in entry]
    if not counts:
        return []
    shares = []
    for is_fit in (True, False):
        pairs = [(words, outside) for what, words, outside in counts if (what in FITS) == is_fit]
        words, outside = (sum(numbers) for numbers in zip(*pairs, strict=True)) if pairs else (0, 0)
        shares.append(outside / words if words else 0.0)
    at_fit, since = shares
    figure = f"{since:.1%} of the words of added nodes, {at_fit:.1%} at the fit"
    limit = f"{100 * MOST_NEW_WORDS_RISE:g} points more than at the fit"
    return [Sign("words outside the vocabulary", figure, limit, round(since - at_fit, 6), MOST_NEW_WORDS_RISE)]


def _losing_classes(changes: Sequence[Entry], last: dict[str, Any], max_loss: float) -> Sign:
    """Check how many classes have lost more than ``max_loss`` of recall since they were first measured."""
    first: dict[str, float] = {}
    for entry in changes:
        if entry["what"] == "rename":
            first = {entry["to"] if name == entry["from"] else name: value for name, value in first.items()}
        recalls = (entry.get("accuracy") or {}).get("classes")
        if recalls and recalls.keys() != first.keys():  # a class that is retired and learned again starts again
            first = {name: first.get(name, recall) for name, recall in recalls.items()}
    losses = {name: first[name] - recall for name, recall in last.get("classes", {}).items()}
    losing = sorted((name for name, loss in losses.items() if loss > max_loss), key=lambda name: -losses[name])
    named = ", ".join(f"{name} -{100 * losses[name]:.1f}" for name in losing[:MOST_NAMED])
    what = f"classes that lost more than {100 * max_loss:g} points of recall"
    figure = f"{len(losing)} of {len(losses)}{f': {named}' if losing else ''}"
    limit = f"{MOST_LOSING_CLASSES:.0%} of the classes"
    share = round(len(losing) / len(losses), 6) if losses else None
    return Sign(what, figure, limit, share, MOST_LOSING_CLASSES)


def _outgrown_classes(labels: LabelStore, shot: int) -> Sign:
    """Check for few-shot classes that now have enough labels to be session-0 classes at a refit."""
    classes = labels.class_of_column()[labels.columns]
    sizes = np.bincount(classes[classes >= 0], minlength=len(labels.classes))
    large = np.flatnonzero(few_shot_classes(labels) & (sizes >= shot + 2))
    named = ", ".join(f"{labels.classes[c]} {sizes[c]}" for c in large[np.argsort(-sizes[large])][:MOST_NAMED])
    figure = f"{large.size} of {len(labels.classes)}{f': {named}' if large.size else ''}"
    return Sign(f"few-shot classes with {shot + 2} labels or more", figure, "0", large.size, 0)


@dataclass(frozen=True)
class ModelInfo:
    """Result of :meth:`GraphClassifier.info`.

    Attributes:
        method: Name of the method.
        classes: Number of classes.
        few_shot: Number of classes that were learned after session 0.
        labelled: Number of nodes with a label.
        nodes: Number of nodes.
        edges: Number of edges.
        version: Version in the folder; None if the model was not saved.
        when: Time of the last change.
        fitted: Time of the last fit or refit.
        changes: Number of changes in the history.
        bytes_on_disk: Bytes of ``versions`` and ``cache``; None without a folder.
        signs: Signs of age.
    """

    method: str
    classes: int
    few_shot: int
    labelled: int
    nodes: int
    edges: int
    version: int | None
    when: str
    fitted: str
    changes: int
    bytes_on_disk: dict[str, int] | None
    signs: tuple[Sign, ...]

    @property
    def refit_due(self) -> bool:
        """Whether one of the signs exceeds its limit."""
        return any(sign.over for sign in self.signs)

    @property
    def verdict(self) -> str:
        """Whether a refit is due and why, in words."""
        return verdict(self.signs)

    def as_json(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "signs": [sign.as_json() for sign in self.signs],
            "refit_due": self.refit_due,
            "verdict": self.verdict,
        }


def info_of(state: ModelState, configuration: Configuration, folder: Path | None, *, full: bool) -> ModelInfo:
    """Collect the result of :meth:`GraphClassifier.info`. ``folder`` is the folder of the model, if it has one."""
    entries, label_store = state.history.entries(), state.parts.label_store
    with written_by_graphfcl():
        changes = lineage(entries)
        unknown = _unknown_share(state, changes, full=full)
        signs = signs_of_age(changes, configuration, label_store=label_store, unknown=unknown)
    nodes, edges = state.counts()
    return ModelInfo(
        method=configuration.method,
        classes=len(label_store.classes),
        few_shot=int(few_shot_classes(label_store).sum()),
        labelled=int(label_store.nodes.size),
        nodes=nodes,
        edges=edges,
        version=state.version,
        when=str(entries[-1]["when"]) if entries else "",
        fitted=next((str(entry["when"]) for entry in reversed(changes) if entry["what"] in FITS), ""),
        changes=len(entries),
        bytes_on_disk=None if folder is None else bytes_on_disk(folder),
        signs=tuple(signs),
    )


def signs_in_history(entries: Sequence[Entry], configuration: Configuration) -> list[Sign]:
    """Return the signs that can be computed from the history alone."""
    with written_by_graphfcl():
        changes = lineage(entries)
        return signs_of_age(changes, configuration, label_store=None, unknown=last_accuracy(changes).get("unknown"))


def _unknown_share(state: ModelState, changes: Sequence[Entry], *, full: bool) -> float | None:
    """Return the share of nodes that are called unknown, or None if neither the history nor the cache has it.

    With ``full``, compute the share from the scores of all nodes.
    """
    measured, answering = last_accuracy(changes).get("unknown"), state.answering
    if measured is not None and not full:
        return float(measured)
    if full or (answering.computed is not None and not state.passes):
        rows = np.concatenate(list(state.names().row_parts(row_bytes=16)))
        return unknown_share(state.calibration(), answering.answers().ood_score[rows])
    ood_score = None if answering.stored is None else answering.stored.cached_ood_score()
    return None if ood_score is None else unknown_share(state.calibration(), ood_score)


def bytes_on_disk(folder: Path) -> dict[str, int]:
    """Return the sizes of a model's files by kind, without reading the files."""
    sizes = {kind: folder / name for kind, name in FILES.items()}
    return {kind: path.stat().st_size if path.is_file() else 0 for kind, path in sizes.items()}
