"""What a model is at a glance, and signs that it has aged since its last fit."""

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

UNKNOWN_MORE = 0.05  # of all nodes
OUTSIDE_MORE = 0.10  # of the words of nodes that were added
LOSERS = 0.10  # of the classes
CONFIDENCE_MOVED = 0.10
CONFIDENCE = "mean probability on validation nodes"
FITS = ("fit", "refit")
NAMED = 5  # classes named in a sign
FILES = {"versions": "model.sqlite", "cache": "cache.sqlite"}


@dataclass(frozen=True)
class Sign:
    """One sign of age.

    figure, limit: what was found and what it may be, in words. value, most: the numbers behind them; the value is None
        if it was not measured.
    """

    what: str
    figure: str
    limit: str
    value: float | None
    most: float

    @property
    def over(self) -> bool:
        """Whether it is above the limit."""
        return self.value is not None and self.value > self.most

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "over": self.over}


def signs_of_age(
    life: Sequence[Entry], configuration: Configuration, *, label_store: LabelStore | None, unknown: float | None
) -> list[Sign]:
    """All signs.

    life: the changes that led to the model, oldest first. label_store: of the model; without it labels are not counted.
    unknown: the share of nodes that are called unknown, if it is known.
    """
    fits = [place for place, entry in enumerate(life) if entry["what"] in FITS]
    life = life[fits[-1] if fits else 0 :]
    then, now = next(_measured(life), {}), last_measured(life)
    signs = [
        _shift("nodes called unknown", then.get("unknown"), unknown, UNKNOWN_MORE),
        *_words(life),
        _losers(life, now, configuration.max_loss),
        _shift(CONFIDENCE, then.get("confidence"), now.get("confidence"), CONFIDENCE_MOVED, both_ways=True),
    ]
    return signs if label_store is None else [*signs, _outgrown(label_store, configuration.shot)]


def _measured(life: Iterable[Entry]) -> Iterator[dict[str, Any]]:
    return (entry["accuracy"] for entry in life if entry.get("accuracy"))


def last_measured(life: Sequence[Entry]) -> dict[str, Any]:
    """What was measured after the last change that was."""
    return next(_measured(reversed(life)), {})


def verdict(signs: Sequence[Sign]) -> str:
    """Whether a refit is due, in words."""
    over = [sign.what for sign in signs if sign.over]
    return f"a refit is due ({', '.join(over)})" if over else "nothing asks for a refit"


def _shift(what: str, then: float | None, now: float | None, most: float, *, both_ways: bool = False) -> Sign:
    """How far a share has moved since the fit: up, or in either direction."""
    first, last = ("not measured" if share is None else f"{share:.1%}" for share in (then, now))
    moved = None if then is None or now is None else round(now - then, 6)
    value = abs(moved) if moved is not None and both_ways else moved
    limit = f"{100 * most:g} points {'from that' if both_ways else 'more than'} after the fit"
    return Sign(what, f"{last}, after the fit {first}", limit, value, most)


def _words(life: Sequence[Entry]) -> list[Sign]:
    """Only of a graph made from text, whose changes count words."""
    counted = [(entry["what"], entry["words"], entry["unknown_words"]) for entry in life if "words" in entry]
    if not counted:
        return []
    shares = []
    for fits in (True, False):
        of_kind = [(words, outside) for what, words, outside in counted if (what in FITS) == fits]
        words, outside = (sum(numbers) for numbers in zip(*of_kind, strict=True)) if of_kind else (0, 0)
        shares.append(outside / words if words else 0.0)
    at_fit, since = shares
    figure = f"{since:.1%} of those of nodes added, at the fit {at_fit:.1%}"
    limit = f"{100 * OUTSIDE_MORE:g} points more than at the fit"
    return [Sign("words outside the vocabulary", figure, limit, round(since - at_fit, 6), OUTSIDE_MORE)]


def _losers(life: Sequence[Entry], now: dict[str, Any], max_loss: float) -> Sign:
    """Classes that lost recall since they were first measured."""
    first: dict[str, float] = {}
    for entry in life:
        if entry["what"] == "rename":
            first = {entry["to"] if name == entry["from"] else name: value for name, value in first.items()}
        recalls = (entry.get("accuracy") or {}).get("classes")
        if recalls and recalls.keys() != first.keys():  # a class that was retired starts again if it is learned again
            first = {name: first.get(name, recall) for name, recall in recalls.items()}
    losses = {name: first[name] - recall for name, recall in now.get("classes", {}).items()}
    losers = sorted((name for name, loss in losses.items() if loss > max_loss), key=lambda name: -losses[name])
    named = ", ".join(f"{name} -{100 * losses[name]:.1f}" for name in losers[:NAMED])
    figure = f"{len(losers)} of {len(losses)}{f': {named}' if losers else ''}"
    limit = f"{LOSERS:.0%} of the classes"
    share = round(len(losers) / len(losses), 6) if losses else None
    return Sign(f"classes that lost more than {100 * max_loss:g} points of recall", figure, limit, share, LOSERS)


def _outgrown(labels: LabelStore, shot: int) -> Sign:
    """Few-shot classes that have enough labels for session 0."""
    classes = labels.class_of_column()[labels.columns]
    sizes = np.bincount(classes[classes >= 0], minlength=len(labels.classes))
    large = np.flatnonzero(few_shot_classes(labels) & (sizes >= shot + 2))
    named = ", ".join(f"{labels.classes[c]} {sizes[c]}" for c in large[np.argsort(-sizes[large])][:NAMED])
    figure = f"{large.size} of {len(labels.classes)}{f': {named}' if large.size else ''}"
    return Sign(f"few-shot classes with {shot + 2} labels or more", figure, "0", large.size, 0)


@dataclass(frozen=True)
class ModelInfo:
    """The result of :meth:`GraphClassifier.info`.

    few_shot: how many of the classes were learned after session 0. labelled: nodes with a label. when: of the last
    change, fitted: of the last fit or refit. version, bytes_on_disk (of versions and cache): None without a folder.
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
        """Whether one of the signs is above its limit."""
        return any(sign.over for sign in self.signs)

    @property
    def verdict(self) -> str:
        """The signs in a sentence."""
        return verdict(self.signs)

    def as_json(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "signs": [sign.as_json() for sign in self.signs],
            "refit_due": self.refit_due,
            "verdict": self.verdict,
        }


def info_of(state: ModelState, configuration: Configuration, folder: Path | None, *, full: bool) -> ModelInfo:
    """See :meth:`GraphClassifier.info`. folder: where the model lies."""
    entries, label_store = state.history.entries(), state.parts.label_store
    with written_by_graphfcl():
        life = lineage(entries)
        signs = signs_of_age(
            life, configuration, label_store=label_store, unknown=_unknown_share(state, life, full=full)
        )
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
        fitted=next((str(entry["when"]) for entry in reversed(life) if entry["what"] in FITS), ""),
        changes=len(entries),
        bytes_on_disk=None if folder is None else bytes_on_disk(folder),
        signs=tuple(signs),
    )


def signs_in_history(entries: Sequence[Entry], configuration: Configuration) -> list[Sign]:
    """The signs that the history alone shows."""
    with written_by_graphfcl():
        life = lineage(entries)
        return signs_of_age(life, configuration, label_store=None, unknown=last_measured(life).get("unknown"))


def _unknown_share(state: ModelState, life: Sequence[Entry], *, full: bool) -> float | None:
    """The share of nodes that are called unknown; None if neither the history nor the cache has it.

    full: compute it if need be.
    """
    measured, answering = last_measured(life).get("unknown"), state.answering
    if measured is not None and not full:
        return float(measured)
    if full or (answering.computed is not None and not state.passes):
        rows = np.concatenate(list(state.names().row_parts(row_bytes=16)))
        return unknown_share(state.calibration(), answering.answers().ood_score[rows])
    ood_score = None if answering.stored is None else answering.stored.cached_ood_score()
    return None if ood_score is None else unknown_share(state.calibration(), ood_score)


def bytes_on_disk(folder: Path) -> dict[str, int]:
    """How large the files of a model are, by kind; none of them is read."""
    sizes = {kind: folder / name for kind, name in FILES.items()}
    return {kind: path.stat().st_size if path.is_file() else 0 for kind, path in sizes.items()}
