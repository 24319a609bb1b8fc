"""A fit that was stopped goes on where it was."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphfcl import GraphClassifier, GraphFolder, Progress, Resources
from graphfcl.production import FitCheckpoints
from tests.production.graph.folder_models import HIDDEN, SETTINGS, fit


class Killed(Exception):
    pass


class KilledAt(Progress):
    """Stops a fit when a phase begins."""

    def __init__(self, stage: str) -> None:
        self.stage = stage
        self.seen: list[str] = []

    def step(self, stage: str, *_: Any, **__: Any) -> None:
        self.seen.append(stage)
        if stage == self.stage:
            raise Killed


def test_a_fit_that_was_stopped_goes_on(graph: GraphFolder, tmp_path: Path) -> None:
    def run(progress: Progress, *, resume: bool) -> GraphClassifier:
        checkpoints = FitCheckpoints(tmp_path / "fitting", resume=resume)
        model = GraphClassifier("sgc-ridge")
        return model.fit(graph, hide_classes=HIDDEN, progress=progress, checkpoints=checkpoints)

    with pytest.raises(Killed):
        run(KilledAt("choosing"), resume=False)
    again = KilledAt("never")
    found = run(again, resume=True)
    assert "hops" not in again.seen
    assert "vectors" not in again.seen
    other = graph.with_resources(Resources(tmp_path / "other work", 4 << 30))
    np.testing.assert_array_equal(
        found.prediction_columns()["probability"], fit(other).prediction_columns()["probability"]
    )


@pytest.mark.long
def test_a_calibration_run_that_was_stopped_leaves_nothing_behind(graph: GraphFolder, tmp_path: Path) -> None:
    def run(work: str, progress: Progress, *, resume: bool) -> set[str]:
        checkpoints = FitCheckpoints(tmp_path / f"fitting {work}", resume=resume)
        there = graph.with_resources(Resources(tmp_path / work, 4 << 30))
        GraphClassifier("anchor", SETTINGS["anchor"]).fit(there, progress=progress, checkpoints=checkpoints)
        return {path.name for path in (tmp_path / work).rglob("*") if path.is_file()}

    with pytest.raises(Killed):
        run("one", KilledAt("calibration run, scores"), resume=False)
    half = next((tmp_path / "one").rglob("x-*")) / ".part-0000.host.1.ab.tmp"
    half.write_bytes(b"half")
    assert run("one", KilledAt("never"), resume=True) == run("two", KilledAt("never"), resume=False)
