"""Learner states as files: safetensors with JSON values and a checksum in the header, written atomically."""

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphfcl.errors import InputError
from graphfcl.methods.state import LearnerState
from graphfcl.runtime.files import read_bytes, safetensors_header, write_bytes

if TYPE_CHECKING:
    import torch

FORMAT = "graphfcl checkpoint 2"


def save_checkpoint(path: str | Path, state: LearnerState, run: dict[str, Any]) -> None:
    """Write a file with the learner's tensors and values, and the values of its run."""
    from safetensors.torch import save

    tensors = {name: tensor.contiguous() for name, tensor in state.tensors.items()}
    values = json.dumps({"learner": state.values, "run": run})
    header = {"format": FORMAT, "values": values, "sha256": _checksum(tensors, values)}
    write_bytes(path, save(tensors, header))


def load_checkpoint(path: str | Path) -> tuple[LearnerState, dict[str, Any]]:
    """Read a checkpoint; a damaged file or another format raises an :class:`InputError`."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    content = read_bytes(path, "the checkpoint")
    try:
        header = safetensors_header(content)
        tensors = load(content)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is damaged or not a checkpoint: start again without --resume.") from error
    if header.get("format") != FORMAT:
        raise InputError(
            f"{path} has format {header.get('format')!r}, this graphfcl reads {FORMAT!r}: use the graphfcl that wrote "
            "it, or start again without --resume."
        )
    if header.get("sha256") != _checksum(tensors, header["values"]):
        raise InputError(f"{path} is damaged (its checksum does not match): start again without --resume.")
    values = json.loads(header["values"])
    return LearnerState(tensors, values["learner"]), values["run"]


def _checksum(tensors: dict[str, "torch.Tensor"], values: str) -> str:
    digest = hashlib.sha256(values.encode())
    for name in sorted(tensors):
        digest.update(f"{name}:{tuple(tensors[name].shape)}:{tensors[name].dtype}".encode())
        digest.update(tensors[name].numpy().tobytes())
    return digest.hexdigest()
