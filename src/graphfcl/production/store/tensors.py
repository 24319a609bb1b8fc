"""Tensors of a learner in a tree. Small ones share one array, so that a learner is not a hundred files."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from graphfcl.production.store.block_arrays import AXES, BlockArrays
from graphfcl.production.store.damage import need
from graphfcl.production.store.strict_json import whole_number
from graphfcl.production.store.trees import Tree

if TYPE_CHECKING:
    import torch

SMALL = 1 << 15  # bytes of a tensor that is packed with others
BLOCK = 1 << 18  # a class more changes the last rows of some tensors
KINDS = ("bool", "int8", "uint8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")


def write_tensors(arrays: BlockArrays, tensors: "dict[str, torch.Tensor]") -> Tree:
    """Tensors in blocks; the values say of each name its type and shape, and where it stands among the small ones."""
    large, small, said, place = {}, [], {}, 0
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        kind, shape = str(tensor.dtype).removeprefix("torch."), list(tensor.shape)
        array = _as_array(tensor)
        if array.nbytes < SMALL:
            said[name] = [kind, shape, place]
            small.append(np.frombuffer(array.tobytes(), dtype=np.uint8))
            place += array.nbytes
        else:
            said[name] = [kind, shape]
            large[f"tensor {name}"] = arrays.write(array, block=BLOCK)
    pack = np.concatenate(small) if small else np.zeros(0, np.uint8)
    return Tree({**large, "pack": arrays.write(pack)}, {"tensors": said})


def read_tensors(arrays: BlockArrays, tree: Tree) -> "dict[str, torch.Tensor]":
    """The reverse."""
    pack = arrays.read(tree.index("pack"))
    need(pack.dtype == np.uint8 and pack.ndim == 1, "its tensors are of another type than they say")
    said = tree.value("tensors")
    need(isinstance(said, dict), "it lists no tensors")
    return {name: _read(arrays, tree, name, how, pack) for name, how in said.items()}


def _read(arrays: BlockArrays, tree: Tree, name: str, how: Any, pack: np.ndarray) -> "torch.Tensor":
    import torch

    need(isinstance(how, list) and len(how) in (2, 3) and how[0] in KINDS, "it has a tensor of an unknown type")
    kind, shape = getattr(torch, how[0]), how[1]
    need(isinstance(shape, list) and len(shape) <= AXES, "it has a tensor without a shape")
    count = math.prod(whole_number(axis, "the shape of a tensor", 0, 2**40) for axis in shape)
    stored = np.dtype("<i2") if kind == torch.bfloat16 else _as_array(torch.zeros(0, dtype=kind)).dtype
    if len(how) == 3:
        size = count * stored.itemsize
        place = whole_number(how[2], "the place of a tensor", 0, pack.size)
        need(place + size <= pack.size, "its tensors are smaller than they say")
        array = np.frombuffer(pack[place : place + size].tobytes(), dtype=stored).reshape(shape).copy()
    else:
        array = arrays.read(tree.index(f"tensor {name}"))
        need(array.dtype == stored and list(array.shape) == shape, "its tensors are of another shape than they say")
    need(stored.kind != "b" or bool((array.view(np.uint8) <= 1).all()), "a truth value is neither 0 nor 1")
    tensor = torch.from_numpy(array)
    return tensor.view(torch.bfloat16) if kind == torch.bfloat16 else tensor


def _as_array(tensor: "torch.Tensor") -> np.ndarray:
    """The same bits; NumPy knows no bfloat16."""
    import torch

    return (tensor.view(torch.int16) if tensor.dtype == torch.bfloat16 else tensor).numpy()
