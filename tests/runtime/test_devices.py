"""Devices that a user may name."""

from pathlib import Path

import pytest

from graphfcl import GraphClassifier, GraphFolder, InputError, Resources
from graphfcl.graph.folder import write_folder
from graphfcl.runtime import devices
from graphfcl.runtime.devices import checked_device, chosen_device
from tests.methods.blocks.samples import random_graph


@pytest.mark.parametrize(
    ("wanted", "gpus", "why"),
    [
        ("gpu", 2, "--device is 'gpu'; it must be auto, cpu or cuda, or cuda:1 for the second GPU."),
        ("cuda:", 2, "it must be auto, cpu or cuda"),
        ("cuda:-1", 2, "it must be auto, cpu or cuda"),
        ("cuda:01", 2, "it must be auto, cpu or cuda"),
        ("cuda:1\n", 2, "it must be auto, cpu or cuda"),
        ("cuda", 0, "--device cuda: this machine has no usable GPU; take cpu."),
        ("cuda:1", 0, "--device cuda:1: this machine has no usable GPU; take cpu."),
        ("cuda:1", 1, "--device cuda:1: this machine has one GPU, cuda:0; take one of these."),
        ("cuda:7", 4, "this machine has 4 GPUs, cuda:0 to cuda:3; take one of these."),
    ],
)
def test_a_device_that_is_not_there_gets_a_sentence(
    wanted: str, gpus: int, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "gpu_count", lambda: gpus)
    with pytest.raises(InputError) as refused:
        checked_device(wanted, "--device")
    assert why in str(refused.value)


def test_devices_that_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    taken: list[str] = []
    monkeypatch.setattr(devices, "gpu_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", taken.append)
    for wanted in ("auto", "cpu", "cuda", "cuda:0", "cuda:1"):
        assert checked_device(wanted) == wanted
    assert [chosen_device(wanted) for wanted in ("auto", "cpu", "cuda", "cuda:1")] == ["cuda", "cpu", "cuda", "cuda:1"]
    assert taken == ["cuda:1"], "steps that are captured run on the GPU that was named"


@pytest.mark.parametrize(("wanted", "why"), [("gpu", "it must be auto, cpu or cuda"), ("cuda", "no usable GPU")])
def test_a_wrong_device_gets_a_sentence_in_python(wanted: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "gpu_count", lambda: 0)
    with pytest.raises(InputError, match=why):
        GraphClassifier("sgc-ridge", device=wanted).fit(random_graph(200))
    assert chosen_device("meta") == "meta", "other devices of torch are taken by their word"


def test_a_graph_on_the_disk_takes_no_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "gpu_count", lambda: 2)  # auto would take one
    write_folder(random_graph(400), tmp_path / "graph")
    graph = GraphFolder.open(tmp_path / "graph", Resources(tmp_path / "work", 4 << 30))
    model = GraphClassifier("sgc-ridge", device="auto").fit(graph)
    model.save(tmp_path / "model")
    again = GraphClassifier.load(tmp_path / "model", device="auto")
    assert str(again.parts().learner.device) == "cpu"
    with pytest.raises(InputError, match="device cuda: a graph on disk is processed on the CPU"):
        GraphClassifier.load(tmp_path / "model", device="cuda")
    with pytest.raises(InputError, match="device cuda:1: a graph on disk"):
        GraphClassifier("sgc-ridge", device="cuda:1").fit(graph)
