"""A checkpoint and a cell may name a method from outside; reading them imports nothing."""

import sys
from pathlib import Path

import pytest

from graphfcl import InputError, LearnerState, find_method
from graphfcl.experiments import Cell, CellStore, Run, load_checkpoint, run, save_checkpoint
from tests.golden.samples import SHORT, golden_stream


@pytest.fixture(autouse=True)
def _trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "trap.py").write_text("open('sprung', 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.parametrize("name", ["os:system", "trap:Learner"])
def test_a_checkpoint_is_refused_by_every_other_method(tmp_path: Path, name: str) -> None:
    learner = find_method("proto-gcn").make(SHORT["proto-gcn"])
    learner.fit(golden_stream("transductive").base)
    state = learner.state()
    crafted = LearnerState(state.tensors, {**state.values, "method": name})
    save_checkpoint(tmp_path / "crafted.safetensors", crafted, {"identity": {"method": name}})
    loaded, _ = load_checkpoint(tmp_path / "crafted.safetensors")
    with pytest.raises(InputError, match="another method, seed or settings"):
        find_method("proto-gcn").make(SHORT["proto-gcn"]).load_state(loaded)
    assert not (tmp_path / "sprung").exists()
    assert "trap" not in sys.modules


@pytest.mark.parametrize("name", ["os:system", "trap:Learner"])
def test_a_cell_is_read_without_its_method(tmp_path: Path, name: str) -> None:
    result = run(Run(golden_stream("transductive"), "sgc-ridge", SHORT["sgc-ridge"]))
    store, cell = CellStore(tmp_path / "out"), Cell("anything", name, 0, source=f"{name}@0123")
    store.save(cell, result)
    found = store.read(cell)
    assert found is not None
    assert found["sessions"] == result["sessions"]
    assert not (tmp_path / "sprung").exists()
    assert "trap" not in sys.modules
