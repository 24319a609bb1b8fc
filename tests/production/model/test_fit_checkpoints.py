"""A fit that is stopped goes on where it was, and is the fit that it would have been."""

from pathlib import Path

import pytest

from graphfcl import GraphClassifier, InputError, ModelFolder, Progress
from graphfcl.production.model import fit_checkpoints
from tests.cli.command import graphfcl_inside
from tests.production.models import HIDDEN, NAME, quick, same_answers, small_graph


class Stop(Exception):
    """What a kill looks like from inside."""


class StopsIn(Progress):
    """Stops a fit in its second step of a stage; notes all stages."""

    def __init__(self, stage: str = "") -> None:
        self.stage, self.seen, self.stages = stage, 0, list[str]()

    def step(self, stage: str, step: int, total: int, *, loss: float | None = None, score: float | None = None) -> None:
        _ = step, total, loss, score
        self.stages += [stage] if stage not in self.stages else []
        self.seen += stage == self.stage
        if self.seen == 2:
            raise Stop


@pytest.fixture(autouse=True)
def _kept_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit_checkpoints, "SECONDS_BETWEEN", 0.0)


def fit(folder: Path, stage: str = "", *, resume: bool = False, method: str = "anchor", seed: int = 0) -> StopsIn:
    model, watching = GraphClassifier(method, quick(method), seed=seed), StopsIn(stage)
    checkpoints = ModelFolder(folder).fit_checkpoints(resume=resume)
    model.fit(small_graph(), hide_classes=HIDDEN, progress=watching, checkpoints=checkpoints)
    model.save(folder)
    model.wait()
    return watching


@pytest.mark.parametrize("stage", ["encoder", "calibration run, encoder"])
def test_a_fit_that_was_stopped_becomes_the_same_model(tmp_path: Path, stage: str) -> None:
    fit(tmp_path / "whole")
    with pytest.raises(Stop):
        fit(tmp_path / "stopped", stage)
    assert not ModelFolder(tmp_path / "stopped").exists()
    gone_on = fit(tmp_path / "stopped", resume=True)
    assert ("encoder" in gone_on.stages) == (stage == "encoder"), "what was done is not done again"
    whole, stopped = (GraphClassifier.load(tmp_path / name) for name in ("whole", "stopped"))
    same_answers(whole, stopped, 1e-6)
    assert whole.calibration_.held_out.weights == pytest.approx(stopped.calibration_.held_out.weights, rel=1e-4)


def test_methods_that_meta_train_go_on_too(tmp_path: Path) -> None:
    fit(tmp_path / "whole", method="hag-meta")
    with pytest.raises(Stop):
        fit(tmp_path / "stopped", "pre-training", method="hag-meta")
    fit(tmp_path / "stopped", method="hag-meta", resume=True)
    whole, stopped = (GraphClassifier.load(tmp_path / name) for name in ("whole", "stopped"))
    same_answers(whole, stopped, 1e-6)


def test_what_was_stopped_is_not_written_over_and_not_mixed_up(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    with pytest.raises(Stop):
        fit(folder, "encoder")
    with pytest.raises(InputError, match="holds a fit that was stopped: go on with --resume"):
        fit(folder)
    with pytest.raises(InputError, match="belongs to a fit with another seed: repeat its options"):
        fit(folder, resume=True, seed=1)
    fit(folder, resume=True)
    with ModelFolder(folder).editing() as model:  # the next writer tidies up
        model.rename("class-00", "zero")
    assert not (folder / "fitting").exists()


def test_on_the_command_line(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    with pytest.raises(Stop):
        fit(folder, "encoder")
    options = ["--graph", NAME, "--model", folder, "--hide-classes", ",".join(HIDDEN)]
    options += [word for key, value in quick("anchor").items() for word in ("--set", f"{key}={value}")]
    refused = graphfcl_inside("fit", *options)
    assert refused.code == 2
    assert "go on with --resume" in refused.err
    done = graphfcl_inside("fit", *options, "--resume")
    assert done.code == 0, done.err
    assert "calibration run, encoder" in done.err
    assert not (folder / "fitting").exists()
