"""Parts name the attributes that are their state; these come back as they were."""

import json
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from graphfcl.methods.shared.parts import OwnAttributes, Part

CPU = torch.device("cpu")


class Example(Part):
    """One attribute of each kind."""

    name = "example"
    saved = ("tensor", "array", "matrix", "random", "pair", "weights", "plain", "nothing")

    def __init__(self) -> None:
        self.tensor, self.array = torch.arange(3), np.ones(2, np.float32)
        self.matrix: Any = sparse.csr_array(np.eye(3, dtype=np.float32))
        self.random = np.random.default_rng(3)
        self.pair: Any = (np.arange(2), torch.ones(1))
        self.weights: Any = {"layer.weight": torch.zeros(2), "counts": [1, 2]}
        self.plain: Any = {"steps": 3, "rate": 0.5, "names": ["a"]}
        self.nothing: Any = None


def saved(part: Part) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    return json.loads(json.dumps(part.values())), part.tensors()


def test_the_state_is_a_copy_and_comes_back() -> None:
    part, other = Example(), Example()
    part.tensor, part.plain["steps"] = torch.tensor([5, 6]), 9
    values, tensors = saved(part)
    part.tensor[0], part.plain["steps"], part.array[0] = 0, 1, 7
    other.load(values, tensors, CPU)
    assert other.tensor.tolist() == [5, 6]
    assert other.plain == {"steps": 9, "rate": 0.5, "names": ["a"]}
    assert other.array.tolist() == [1, 1]
    assert other.array.dtype == np.float32
    assert (other.matrix != part.matrix).nnz == 0
    assert other.random.random() == np.random.default_rng(3).random()
    assert isinstance(other.pair, tuple)
    assert torch.equal(other.weights["layer.weight"], torch.zeros(2))
    assert other.weights["counts"] == [1, 2]
    assert other.nothing is None
    assert {name.split(".")[0] for name in (*values, *tensors)} == {"example"}


def test_another_kind_is_refused() -> None:
    values, tensors = saved(Example())
    values["example.tensor"] = {"kind": "value", "value": 3}
    with pytest.raises(ValueError, match=r"example\.tensor is a int"):
        Example().load(values, tensors, CPU)


def test_attributes_of_a_learner_are_a_part() -> None:
    owner, other = Example(), Example()
    owner.plain = [1]
    other.plain = []
    OwnAttributes(other, "plain", "tensor").load(*saved(OwnAttributes(owner, "plain", "tensor")), CPU)
    assert other.plain == [1]
