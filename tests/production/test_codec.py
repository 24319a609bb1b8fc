"""The files of a model: what stands in which, and parts that do not fit together are refused."""

import json
from pathlib import Path

import pytest

from graphfcl import GraphClassifier, InputError
from graphfcl.production.model.codec import decode, encode
from graphfcl.production.store.block_arrays import BlockArrays
from graphfcl.production.store.damage import Damaged
from graphfcl.production.store.objects import MemoryObjects
from graphfcl.production.store.tensors import read_tensors
from graphfcl.production.store.trees import read_tree
from graphfcl.runtime.files import canonical_json
from tests.production.models import fitted, same_answers


def test_tensors_of_another_shape_are_refused(folder: Path) -> None:
    objects = MemoryObjects()
    trees = encode(GraphClassifier.load(folder).parts(), BlockArrays(objects))
    knowledge = json.loads(objects.content[trees["knowledge"][0]])
    knowledge["values"]["learner"]["sizes"]["features"] = 9
    content = canonical_json(knowledge)
    with pytest.raises((Damaged, InputError)):
        decode({**trees, "knowledge": [objects.put(content), len(content)]}, BlockArrays(objects), device="cpu")
    with pytest.raises(Damaged):
        decode({**trees, "nodes": trees["edges"]}, BlockArrays(objects), device="cpu")


@pytest.mark.parametrize("name", ["anchor", "proto-gcn"])
def test_lasting_tensors_have_a_tree_of_their_own(name: str) -> None:
    parts, arrays = fitted(name).parts(), BlockArrays(MemoryObjects())

    def tensors() -> tuple[set[str], set[str]]:
        lasting, others = (read_tree(arrays.objects, trees[each]) for each in ("network", "knowledge"))
        return set(read_tensors(arrays, lasting)), set(read_tensors(arrays, others))

    trees = encode(parts, arrays)
    lasting, others = tensors()
    assert lasting
    assert all(key.startswith(parts.learner.lasting_tensors) for key in lasting)
    assert not any(key.startswith(parts.learner.lasting_tensors) for key in others)
    assert lasting | others == set(parts.learner.state().tensors)
    parts.learner.lasting_tensors = ()  # type: ignore[misc]
    trees = encode(parts, arrays)
    assert not tensors()[0]
    same_answers(GraphClassifier.from_parts(decode(trees, arrays, device="cpu")), GraphClassifier.from_parts(parts))
