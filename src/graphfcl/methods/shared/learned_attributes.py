"""Attributes whose names end in ``_`` as tensors and plain values, and back: the state of a learner by default."""

import json
from typing import Any

import numpy as np
import torch

from graphfcl.errors import InputError

TAKEN = ("classes_",)  # every state has it in a place of its own


def write_learned(owner: Any) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Tensors by attribute, and for each attribute what it is; copies throughout."""
    tensors: dict[str, torch.Tensor] = {}
    learned: dict[str, Any] = {}
    for name, value in vars(owner).items():
        if not _is_learned(name):
            continue
        value = value.item() if isinstance(value, np.generic) else value
        if isinstance(value, torch.Tensor):
            tensors[name], learned[name] = value.detach().cpu().clone(), {"kind": "tensor"}
        elif isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            tensors[name], learned[name] = torch.from_numpy(np.array(value, order="C")), {"kind": "array"}
        elif isinstance(value, np.random.Generator):
            learned[name] = {"kind": "generator", "state": json.dumps(value.bit_generator.state)}
        else:
            learned[name] = {"kind": "value", "value": _plain(value, f"{type(owner).__name__}.{name}")}
    return tensors, learned


def read_learned(owner: Any, tensors: dict[str, torch.Tensor], learned: dict[str, Any]) -> None:
    """The reverse; a tensor goes to the learner's device, and what the state does not have is forgotten."""
    for name in [name for name in vars(owner) if _is_learned(name) and name not in learned]:
        delattr(owner, name)
    for name, what in learned.items():
        if not _is_learned(name):
            raise ValueError(f"{name!r} is no attribute that is learned")
        value: Any
        if what["kind"] == "tensor":
            value = tensors[name].clone().to(owner.device)
        elif what["kind"] == "array":
            value = tensors[name].numpy().copy()
        elif what["kind"] == "generator":
            value = np.random.default_rng()
            value.bit_generator.state = json.loads(what["state"])
        else:
            value = json.loads(json.dumps(what["value"]))
        setattr(owner, name, value)


def _is_learned(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_") and name not in TAKEN


def _plain(value: Any, where: str) -> Any:
    """A copy of what JSON holds and gives back as it was."""
    try:
        text = json.dumps(value)
        copy = json.loads(text)
    except (TypeError, ValueError):
        text, copy = "", None
    if json.dumps(copy) != text or type(copy) is not type(value) or _has_tuple(value):
        raise InputError(
            f"{where} is a {type(value).__name__}, which a state cannot hold: keep arrays, tensors, numbers, texts, "
            "lists and dictionaries with text keys in attributes that end in _, or say state() and load_state()."
        )
    return copy


def _has_tuple(value: Any) -> bool:
    """JSON would make lists of tuples."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return isinstance(value, tuple) or any(_has_tuple(each) for each in inner)
