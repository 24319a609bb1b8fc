"""The parts of a model: what stands in which, and parts that do not fit together are refused."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from graphfcl import GraphClassifier, InputError
from graphfcl.production.model.codec import decode, encode_in_memory
from graphfcl.production.store.checks import Damaged
from tests.production.models import fitted, same_answers


def test_tensors_of_another_shape_are_refused(folder: Path) -> None:
    parts = encode_in_memory(GraphClassifier.load(folder).parts())
    values = json.loads(json.dumps(parts["knowledge"].values))
    values["learner"]["sizes"]["features"] = 9
    changed = {**parts, "knowledge": replace(parts["knowledge"], values=values)}
    with pytest.raises((Damaged, InputError)):
        decode(changed.__getitem__, device="cpu")
    swapped = {**parts, "nodes": parts["edges"]}
    with pytest.raises(Damaged):
        decode(swapped.__getitem__, device="cpu")


@pytest.mark.parametrize("name", ["anchor", "proto-gcn"])
def test_lasting_tensors_have_a_part_of_their_own(name: str) -> None:
    parts = fitted(name).parts()
    stored = encode_in_memory(parts)
    lasting, others = set(stored["network"].arrays), set(stored["knowledge"].arrays)
    assert lasting
    assert all(key.startswith(parts.learner.lasting_tensors) for key in lasting)
    assert not any(key.startswith(parts.learner.lasting_tensors) for key in others)
    assert lasting | others == set(parts.learner.state().tensors)
    parts.learner.lasting_tensors = ()  # type: ignore[misc]
    stored = encode_in_memory(parts)
    assert not stored["network"].arrays
    copy = decode(stored.__getitem__, device="cpu")
    same_answers(GraphClassifier.from_parts(copy), GraphClassifier.from_parts(parts))
