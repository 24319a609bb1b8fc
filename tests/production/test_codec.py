"""The files of a model: what stands in which, and parts that do not fit together are refused."""

from pathlib import Path

import pytest
from safetensors.torch import load

from graphfcl.errors import InputError
from graphfcl.production import GraphClassifier
from graphfcl.production.codec import Damaged, decode, encode
from tests.production.models import fitted, same_answers


def test_tensors_of_another_shape_are_refused(folder: Path) -> None:
    files, values = encode(GraphClassifier.load(folder).parts())
    with pytest.raises((Damaged, InputError)):
        decode(
            files,
            {**values, "learner": {**values["learner"], "sizes": {**values["learner"]["sizes"], "features": 9}}},
            device="cpu",
        )
    with pytest.raises(Damaged):
        decode({**files, "nodes": files["edges"]}, values, device="cpu")


@pytest.mark.parametrize("name", ["anchor", "proto-gcn"])
def test_lasting_tensors_have_a_file_of_their_own(name: str) -> None:
    parts = fitted(name).parts()
    files, _ = encode(parts)
    lasting, others = load(files["network"]), load(files["knowledge"])
    assert lasting
    assert all(key.startswith(parts.learner.lasting_tensors) for key in lasting)
    assert not any(key.startswith(parts.learner.lasting_tensors) for key in others)
    assert {*lasting, *others} == set(parts.learner.state().tensors)
    parts.learner.lasting_tensors = ()  # type: ignore[misc]
    files, values = encode(parts)
    assert not load(files["network"])
    same_answers(GraphClassifier.from_parts(decode(files, values, device="cpu")), GraphClassifier.from_parts(parts))
