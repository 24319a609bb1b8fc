"""A state of a model as the parts that a folder would hold, for copies in other processes."""

import json
from dataclasses import dataclass, replace

import numpy as np

from graphfcl.production.answers.answers import ModelAnswers
from graphfcl.production.answers.calibration import Readings
from graphfcl.production.graph.place import FolderUse
from graphfcl.production.labels.history import History
from graphfcl.production.model.codec import decode, encode_in_memory
from graphfcl.production.model.parts import Configuration
from graphfcl.production.model.state import ModelState
from graphfcl.production.store.parts import Part


@dataclass(frozen=True)
class PackedState:
    """parts: as a folder has them. history: JSON. answers: scores and readings of all nodes, so that a copy answers the
    same to the digit, without a forward pass; none of a graph on disk, where they lie. use: where such a graph and its
    work folder are.
    """

    parts: dict[str, Part]
    history: str
    version: int | None
    answers: tuple[np.ndarray, ...]
    use: FolderUse


def pack(state: ModelState, configuration: Configuration) -> PackedState:
    """A state that another process can :func:`unpack`."""
    parts = state.copy().parts
    return PackedState(
        parts=encode_in_memory(replace(parts, configuration=configuration)),
        history=json.dumps(state.history.entries()),
        version=state.version,
        answers=() if state.passes else _packed(state.answering.answers()),
        use=parts.graph.use(),
    )


def unpack(packed: PackedState, *, device: str) -> ModelState:
    """The state again; its method must be known here."""
    parts = decode(packed.parts.__getitem__, device=device, use=packed.use)
    answers = None
    if packed.answers:
        scores, *readings = packed.answers
        answers = ModelAnswers.in_memory(scores, Readings(*readings), parts.calibration)
    state = ModelState.of(parts, answers)
    return replace(state, history=History(json.loads(packed.history)), version=packed.version)


def _packed(answers: ModelAnswers) -> tuple[np.ndarray, ...]:
    return tuple(np.asarray(each) for each in (answers.scores, answers.ood_score, answers.temperatures))
