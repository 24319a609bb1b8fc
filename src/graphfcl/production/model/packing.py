"""A state of a model as the bytes of its own files, for copies in other processes. Nothing here is unpickled."""

import io
import json
from dataclasses import dataclass, replace

import numpy as np

from graphfcl.production.answers.answers import ModelAnswers
from graphfcl.production.answers.calibration import Readings
from graphfcl.production.graph.place import FolderUse
from graphfcl.production.labels.history import History
from graphfcl.production.model.codec import decode, encode
from graphfcl.production.model.parts import Configuration
from graphfcl.production.model.state import ModelState
from graphfcl.production.store.block_arrays import BlockArrays
from graphfcl.production.store.objects import MemoryObjects


@dataclass(frozen=True)
class PackedState:
    """objects, trees: as a folder has them, the trees as JSON. history: JSON. answers: those of all nodes as ``.npy``,
    so that a copy answers the same to the digit, without a forward pass; none of a graph on disk, where they lie.
    use: where such a graph and its work folder are.
    """

    objects: dict[str, bytes]
    trees: str
    history: str
    version: int | None
    answers: tuple[bytes, ...]
    use: FolderUse


def pack(state: ModelState, configuration: Configuration) -> PackedState:
    """A state that another process can :func:`unpack`."""
    arrays, parts = BlockArrays(MemoryObjects()), state.copy().parts
    trees = encode(replace(parts, configuration=configuration), arrays)
    assert isinstance(arrays.objects, MemoryObjects)
    return PackedState(
        objects=arrays.objects.content,
        trees=json.dumps(trees),
        history=json.dumps(state.history.entries()),
        version=state.version,
        answers=() if state.passes else _packed(state.answering.answers()),
        use=parts.graph.use(),
    )


def unpack(packed: PackedState, *, device: str) -> ModelState:
    """The state again; its method must be known here."""
    objects = MemoryObjects()
    objects.content = packed.objects
    parts = decode(json.loads(packed.trees), BlockArrays(objects), device=device, use=packed.use)
    answers = None
    if packed.answers:
        scores, *readings = (np.load(io.BytesIO(each), allow_pickle=False) for each in packed.answers)
        answers = ModelAnswers.in_memory(scores, Readings(*readings), parts.calibration)
    state = ModelState.of(parts, answers)
    return replace(state, history=History(json.loads(packed.history)), version=packed.version)


def _packed(answers: ModelAnswers) -> tuple[bytes, ...]:
    return tuple(_npy(each) for each in (answers.scores, answers.ood_score, answers.temperatures))


def _npy(array: np.ndarray) -> bytes:
    content = io.BytesIO()
    np.save(content, array, allow_pickle=False)
    return content.getvalue()
