"""Pre-trained encoders: computed once, the same for all methods, never trusted when damaged."""

import json
import multiprocessing
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from graphfcl import GraphfclWarning, InputError, register_method
from graphfcl.experiments import Run, load_checkpoint, run
from graphfcl.experiments.encoders import EncoderFolder
from graphfcl.methods import Tensors, registry
from graphfcl.methods.proto import ProtoGcn
from graphfcl.nn import Encoder
from tests.experiments.test_runs import numbers, small_stream
from tests.golden.samples import SHORT


def job(method: str, **changes: Any) -> Run:
    return Run(small_stream(), method, {**SHORT[method], **changes})


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.safetensors"))


def test_every_method_uses_the_same_encoder_bit_for_bit(tmp_path: Path) -> None:
    alone = run(job("gpn"))
    first = run(job("hag-meta"), encoders=tmp_path)
    assert not first["pretraining"]["reused"]
    assert first["pretraining"]["seconds"] > 0
    (path,) = files(tmp_path)
    content = path.read_bytes()
    for method, changes in (("gpn", {}), ("hag-meta", {"nla": False}), ("finetune", {}), ("proto-gcn", {})):
        result = run(job(method, **changes), encoders=tmp_path)
        assert result["pretraining"] == {**first["pretraining"], "reused": True}
        if method == "gpn":
            assert numbers(result) == numbers(alone), "found or computed, it is the same"
    assert files(tmp_path) == [path]
    assert path.read_bytes() == content
    run(job("proto-gat"), encoders=tmp_path)
    assert len(files(tmp_path)) == 2, "another encoder"


def test_another_seed_stream_or_setting_is_another_encoder(tmp_path: Path) -> None:
    jobs = [
        job("proto-gcn"),
        Run(small_stream(1), "proto-gcn", SHORT["proto-gcn"]),
        Run(small_stream(track="open"), "proto-gcn", SHORT["proto-gcn"]),
        job("proto-gcn", hidden=16),
        job("proto-gcn", **{"pretraining.learning_rate": 0.004}),
    ]
    for number, one in enumerate(jobs):
        assert not run(one, encoders=tmp_path)["pretraining"]["reused"]
        assert len(files(tmp_path)) == number + 1


def test_streams_of_several_k_share_it(tmp_path: Path) -> None:
    def at(**rules: Any) -> Run:
        return Run(small_stream(split_shot=5, **rules), "gpn", SHORT["gpn"])

    run(at(shot=5), encoders=tmp_path)
    for another in (at(shot=2), at(shot=5, pool_as_supports=True)):
        shared = run(another, encoders=tmp_path)
        assert shared["pretraining"]["reused"]
        assert numbers(shared) == numbers(run(another)), "found or computed, it is the same"
    assert len(files(tmp_path)) == 1
    few, many = (EncoderFolder(tmp_path, at(shot=shot).stream, "module:Class").stream_key for shot in (2, 5))
    assert few != many, "code from outside may read K"
    other = Run(small_stream(shot=5, class_order="random"), "gpn", SHORT["gpn"])
    assert not run(other, encoders=tmp_path)["pretraining"]["reused"]


@pytest.mark.parametrize("damage", ["cut", "bit"])
def test_a_damaged_encoder_is_set_aside_and_computed_again(tmp_path: Path, damage: str) -> None:
    expected = numbers(run(job("proto-gcn"), encoders=tmp_path))
    (path,) = files(tmp_path)
    good, content = path.read_bytes(), bytearray(path.read_bytes())
    if damage == "cut":
        content = content[:-100]
    else:
        content[-100] ^= 1
    path.write_bytes(content)
    with pytest.warns(GraphfclWarning, match="set aside"):
        again = run(job("proto-gcn"), encoders=tmp_path)
    assert numbers(again) == expected
    assert load_checkpoint(path)[0].tensors.keys() == _tensors(good, tmp_path).keys()
    assert path.with_suffix(".damaged").exists()


def _tensors(content: bytes, folder: Path) -> Tensors:
    (folder / "copy").write_bytes(content)
    return load_checkpoint(folder / "copy")[0].tensors


def _ask(folder: Path, ready: Any) -> None:
    """Ask for an encoder when all others do."""

    def compute() -> Tensors:
        (folder / "computed").open("a").write("x")
        time.sleep(0.5)
        return {"value": torch.ones(3)}

    stream = small_stream()
    ready.wait()
    actual = EncoderFolder(folder / "store", stream).get({"a": 1}, compute)
    assert actual["value"].tolist() == [1, 1, 1]


def test_processes_that_ask_at_once_compute_an_encoder_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    ready = context.Barrier(3)
    processes = [context.Process(target=_ask, args=(tmp_path, ready)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert (tmp_path / "computed").read_text() == "x"


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(InputError, match="choose another folder with --encoders"):
        EncoderFolder(tmp_path / "file", small_stream()).get({}, lambda: {"a": torch.ones(1)})


def test_results_say_what_is_kept_and_what_was_used() -> None:
    result = run(job("joint"))
    assert result["uses_pool_labels"]
    assert not run(job("finetune"))["uses_pool_labels"]
    assert result["stored_bytes"] == sum(result["stored"].values())
    assert result["stored"]["nodes"] > 0
    json.dumps(result)


class OtherStart(ProtoGcn):
    """The same method with another encoder, as somebody outside might write it."""

    def _make_encoder(self, start: torch.Generator, hidden: int) -> Encoder:
        encoder = super()._make_encoder(start, hidden)
        with torch.no_grad():
            for parameter in encoder.parameters():
                parameter.mul_(2)
        return encoder


def test_code_from_outside_shares_no_encoder_with_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.REGISTRY, "registered", {})
    register_method(OtherStart)
    expected = numbers(run(job("proto-gcn")))
    other = Run(small_stream(), "other-start", SHORT["proto-gcn"])
    assert not run(other, encoders=tmp_path)["pretraining"]["reused"]
    ours = run(job("proto-gcn"), encoders=tmp_path)
    assert not ours["pretraining"]["reused"]
    assert numbers(ours) == expected
    assert run(other, encoders=tmp_path)["pretraining"]["reused"], "its own it may use again"
