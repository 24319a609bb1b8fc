"""A state of a model as the bytes of its own files, for copies in other processes. Nothing here is unpickled."""

import io
import json
from dataclasses import dataclass, replace

import numpy as np

from graphfcl.methods import LEARNERS, Learner, register_method
from graphfcl.production.codec import Files, decode, encode
from graphfcl.production.model_parts import Configuration
from graphfcl.production.model_state import ModelState


@dataclass(frozen=True)
class PackedState:
    """files, values: as a folder has them, the values as JSON. history: JSON. scores: those of all nodes as ``.npy``,
    so that a copy answers the same to the digit, without a forward pass.
    """

    files: Files
    values: str
    history: str
    version: int | None
    scores: bytes


def pack(state: ModelState, configuration: Configuration) -> PackedState:
    """A state that another process can :func:`unpack`."""
    scores = io.BytesIO()
    np.save(scores, state.asked.scores(), allow_pickle=False)
    files, values = encode(replace(state.copy().parts, configuration=configuration))
    return PackedState(files, json.dumps(values), json.dumps(state.history), state.version, scores.getvalue())


def unpack(packed: PackedState, *, device: str) -> ModelState:
    """The state again; its method must be known here."""
    parts = decode(packed.files, json.loads(packed.values), device=device)
    scores = np.load(io.BytesIO(packed.scores), allow_pickle=False)
    history = tuple(json.loads(packed.history))
    return replace(ModelState.of(parts, scores), history=history, version=packed.version)


def name_of_method(learner: type[Learner]) -> str:
    """The name of a learner class, which is made known if it comes from outside."""
    return learner.name if learner in LEARNERS else register_method(learner).name
