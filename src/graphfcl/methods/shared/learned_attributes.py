"""Conversion of attributes to tensors and JSON values and back, for the state of a learner and of its parts.

By default, the state of a learner is all attributes whose names end in ``_``. The state of a part is the attributes
named in ``Part.saved``.
"""

import json
from typing import Any

import numpy as np
import torch
from scipy import sparse

from graphfcl.errors import InputError

TAKEN = ("classes_",)  # stored separately in every state


def pack(value: Any, name: str, tensors: dict[str, torch.Tensor], where: str = "") -> dict[str, Any]:
    """Convert a value to JSON, and copy its tensors and arrays into ``tensors`` under names that begin with ``name``.

    ``where`` names the value in error messages.
    """
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, torch.Tensor):
        tensors[name] = value.detach().cpu().clone()
        return {"kind": "tensor"}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        tensors[name] = torch.from_numpy(np.array(value, order="C"))
        return {"kind": "array"}
    if isinstance(value, sparse.csr_array):
        parts = pack((value.data, value.indices, value.indptr), name, tensors, where)
        return {"kind": "matrix", "shape": list(value.shape), "parts": parts}
    if isinstance(value, np.random.Generator):
        # Stored as a string, because JSON readers of other languages cannot represent its large integers.
        return {"kind": "generator", "state": json.dumps(value.bit_generator.state)}
    where = where or name
    if isinstance(value, tuple) or (isinstance(value, list) and not _is_plain(value)):
        items = [pack(each, f"{name}.{place}", tensors, f"{where}[{place}]") for place, each in enumerate(value)]
        return {"kind": type(value).__name__ if type(value) in (tuple, list) else "tuple", "items": items}
    if isinstance(value, dict) and all(type(key) in (str, int) for key in value):
        items = [pack(each, f"{name}.{key}", tensors, f"{where}[{key!r}]") for key, each in value.items()]
        return {"kind": "dictionary", "keys": list(value), "items": items}
    return {"kind": "value", "value": _plain(value, where)}


def unpack(packed: dict[str, Any], name: str, tensors: dict[str, torch.Tensor], device: torch.device) -> Any:
    """Restore a value from the result of :func:`pack`, with tensors on the device."""
    kind = packed["kind"]
    if kind == "tensor":
        return tensors[name].clone().to(device)
    if kind == "array":
        return tensors[name].numpy().copy()
    if kind == "matrix":
        return sparse.csr_array(unpack(packed["parts"], name, tensors, device), shape=tuple(packed["shape"]))
    if kind == "generator":
        random = np.random.default_rng()
        random.bit_generator.state = json.loads(packed["state"])
        return random
    if kind in ("tuple", "list"):
        items = (unpack(each, f"{name}.{place}", tensors, device) for place, each in enumerate(packed["items"]))
        return tuple(items) if kind == "tuple" else list(items)
    if kind == "dictionary":
        pairs = zip(packed["keys"], packed["items"], strict=True)
        return {key: unpack(each, f"{name}.{key}", tensors, device) for key, each in pairs}
    return json.loads(json.dumps(packed["value"]))


def write_learned(owner: Any) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Pack all learned attributes of an object; return copies of their tensors, and their JSON values."""
    tensors: dict[str, torch.Tensor] = {}
    names = [name for name in vars(owner) if _is_learned(name)]
    return tensors, {
        name: pack(getattr(owner, name), name, tensors, f"{type(owner).__name__}.{name}") for name in names
    }


def read_learned(owner: Any, tensors: dict[str, torch.Tensor], learned: dict[str, Any]) -> None:
    """Restore learned attributes, with tensors on the learner's device. Attributes not in the state are deleted."""
    for name in [name for name in vars(owner) if _is_learned(name) and name not in learned]:
        delattr(owner, name)
    for name, packed in learned.items():
        if not _is_learned(name):
            raise ValueError(f"{name!r} is not a learned attribute")
        setattr(owner, name, unpack(packed, name, tensors, owner.device))


def _is_learned(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_") and name not in TAKEN


def _plain(value: Any, where: str) -> Any:
    """Copy a JSON value, or raise an :class:`InputError` if JSON cannot represent it."""
    if not _is_plain(value):
        keep = (
            "its state_dict()"
            if hasattr(value, "state_dict")
            else "tensors, arrays, numbers, strings, and lists, tuples and dictionaries of these, with strings or "
            "integers as keys,"
        )
        raise InputError(
            f"{where} is a {type(value).__name__}, which a state cannot contain: keep {keep} in an attribute that ends "
            "in _, or define state() and load_state()."
        )
    return json.loads(json.dumps(value))


def _is_plain(value: Any) -> bool:
    """Whether a value is unchanged after conversion to JSON and back."""
    try:
        text = json.dumps(value)
        copy = json.loads(text)
    except (TypeError, ValueError):
        return False
    return json.dumps(copy) == text and type(copy) is type(value) and not _has_tuple(value)


def _has_tuple(value: Any) -> bool:
    """Whether a value contains a tuple, which JSON would turn into a list."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return isinstance(value, tuple) or any(_has_tuple(each) for each in inner)
