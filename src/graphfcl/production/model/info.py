"""What a model is, at a glance."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.production.answers.answers import few_shot_classes
from graphfcl.production.answers.calibration import unknown_share
from graphfcl.production.labels.history import Entry, lineage, written_by_graphfcl
from graphfcl.production.model.ageing import FITS, Sign, last_measured, signs_of_age, verdict
from graphfcl.production.model.parts import Configuration
from graphfcl.production.model.state import ModelState

KINDS = {"manifests": "versions", "objects": "objects", "cache": "cache"}


@dataclass(frozen=True)
class ModelInfo:
    """What :meth:`GraphClassifier.info` finds.

    few_shot: how many of the classes were learned after session 0. labelled: nodes with a label. when: of the last
    change, fitted: of the last fit or refit. version, bytes_on_disk (of manifests, objects and cache): None without a
    folder.
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
        """What the signs come to, in words."""
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
    if not full and last_measured(life).get("unknown") is not None:
        return float(last_measured(life)["unknown"])
    if full:
        ood_score = state.asked.answers().ood_score
        there = np.concatenate(list(state.names().row_parts(row_bytes=16)))
        return unknown_share(state.calibration(), ood_score[there])
    cached = state.asked.ood_score_at_hand()
    return None if cached is None else unknown_share(state.calibration(), cached)


def bytes_on_disk(folder: Path) -> dict[str, int]:
    """How large the files of a model are, by kind; none of them is read."""
    return {
        kind: sum(path.stat().st_size for path in (folder / name).glob("*") if path.is_file())
        for kind, name in KINDS.items()
    }
