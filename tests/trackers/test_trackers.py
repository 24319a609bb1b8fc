"""Trackers write what a training tells, where TensorBoard and MLflow find it."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphfcl import Evaluation, GraphClassifier, GraphfclWarning, InputError, MLflowTracker, TensorBoardTracker
from graphfcl.trackers import _plain, _Tracker
from tests.production.models import HIDDEN, quick, small_graph

METHOD = "proto-gcn"


def evaluation() -> Evaluation:
    return Evaluation((np.eye(2), np.ones((3, 3))), (1.5, 0.25), np.array([0, 0, 1]))


def told() -> Iterator[tuple[str, int, float | None, float | None]]:
    """Steps of two stages, the first of which comes again."""
    for stage in ("warming, first", "training", "warming, first"):
        for step in (1, 2):
            yield stage, step, 10.0 / step, step / 4 if stage == "training" else None


EXPECTED = {
    "warming, first/loss": [(1, 10.0), (2, 5.0)],
    "training/loss": [(1, 10.0), (2, 5.0)],
    "training/score": [(1, 0.25), (2, 0.5)],
    "warming, first 2/loss": [(1, 10.0), (2, 5.0)],
}


class Kept(_Tracker):
    """Keeps what it would send."""

    def __init__(self) -> None:
        super().__init__(False)
        self.figures: dict[str, list[tuple[int, float]]] = {}

    def _write(self, name: str, value: float, step: int) -> None:
        self.figures.setdefault(name, []).append((step, value))

    def _flush(self) -> None:
        pass


def test_figures_have_names_of_their_own() -> None:
    tracker = Kept()
    for stage, step, loss, score in told():
        tracker.step(stage, step, 2, loss=loss, score=score)
    assert tracker.figures == EXPECTED
    tracker.figures.clear()
    tracker.on_session(evaluation())
    assert tracker.figures["sessions/balanced_accuracy"] == [(1, pytest.approx(1 / 3))]
    assert tracker.figures["sessions/seconds"] == [(1, 0.25)]


def test_parameters_are_plain_texts() -> None:
    given = {"method": "m", "settings": {"hops": 2, "deep": {"er": 1}}, "way": 3}
    assert _plain(given) == {"method": "m", "settings.hops": "2", "settings.deep": "{'er': 1}", "way": "3"}
    assert _plain(None) == {}


def fit(progress: Any) -> GraphClassifier:
    model = GraphClassifier(METHOD, quick(METHOD))
    return model.fit(small_graph(), hide_classes=HIDDEN, progress=progress)


def events(folder: Path) -> Any:
    loading = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="tensorboard is not installed, an extra"
    )
    found = loading.EventAccumulator(str(folder))
    found.Reload()
    return found


def test_tensorboard_reads_what_was_told(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed, an extra")
    with TensorBoardTracker(tmp_path / "run", parameters={"shot": 5}) as tracker:
        for stage, step, loss, score in told():
            tracker.step(stage, step, 2, loss=loss, score=score)
        tracker.on_session(evaluation())
    found = events(tmp_path / "run")
    written = {tag: [(each.step, each.value) for each in found.Scalars(tag)] for tag in found.Tags()["scalars"]}
    cleaned = {name.replace(", ", "__").replace(" ", "_"): values for name, values in EXPECTED.items()}
    assert {tag: values for tag, values in written.items() if not tag.startswith("sessions/")} in (EXPECTED, cleaned)
    assert written["sessions/seconds"] == [(1, 0.25)]
    assert b"shot" in found.Tensors("parameters/text_summary")[0].tensor_proto.string_val[0]


def test_a_fit_is_tracked_by_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed, an extra")
    with TensorBoardTracker(tmp_path) as tracker:
        fit(tracker)
    tags = events(tmp_path).Tags()["scalars"]
    assert any(tag.endswith("/loss") for tag in tags)
    assert any(tag.endswith("/score") for tag in tags)


def client(folder: Path) -> Any:
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed, an extra")
    return mlflow.MlflowClient(tracking_uri=address(folder))


def address(folder: Path) -> str:
    return (folder / "mlruns").as_uri()


@pytest.fixture
def mlflow_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are enough for a test."""
    pytest.importorskip("mlflow", reason="mlflow is not installed, an extra")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")


@pytest.mark.usefixtures("mlflow_here")
def test_mlflow_keeps_what_was_told(tmp_path: Path) -> None:
    parameters = {"shot": 5, "settings": {"hops": 2}}
    with MLflowTracker("shoes", uri=address(tmp_path), name="first", parameters=parameters) as tracker:
        for stage, step, loss, score in told():
            tracker.step(stage, step, 2, loss=loss, score=score)
        tracker.on_session(evaluation())
    run = client(tmp_path).get_run(tracker.run_id)
    assert run.info.status == "FINISHED"
    assert run.info.run_name == "first"
    assert run.data.params == {"shot": "5", "settings.hops": "2"}
    for name, values in EXPECTED.items():
        history = client(tmp_path).get_metric_history(tracker.run_id, name.replace(",", ""))
        assert [(each.step, each.value) for each in history] == values
    assert run.data.metrics["sessions/seconds"] == 0.25
    with MLflowTracker("shoes", uri=address(tmp_path)) as again:
        pass
    assert client(tmp_path).get_run(again.run_id).info.experiment_id == run.info.experiment_id


@pytest.mark.usefixtures("mlflow_here")
def test_a_training_that_fails_is_marked_and_one_without_a_server_goes_on(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), MLflowTracker(uri=address(tmp_path)) as tracker:
        raise ZeroDivisionError
    assert client(tmp_path).get_run(tracker.run_id).info.status == "FAILED"
    lost = MLflowTracker(uri=address(tmp_path))
    lost.run_id = "gone"
    with pytest.warns(GraphfclWarning, match="MLflow accepts no more values .* training continues without it"), lost:
        lost.step("training", 1, 2, loss=1.0)


@pytest.mark.parametrize(
    ("package", "make", "sentence"),
    [
        ("torch.utils.tensorboard", lambda: TensorBoardTracker("x"), r"pip install 'graphfcl\[tensorboard\]'"),
        ("mlflow", MLflowTracker, r"pip install 'graphfcl\[mlflow\]'"),
    ],
)
def test_without_the_package_there_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, package: str, make: Any, sentence: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=f"needs .*, which is not installed: `{sentence}`"):
        make()


def test_a_place_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed, an extra")
    (tmp_path / "file").write_text("here")
    with pytest.raises(InputError, match=r"TensorBoard cannot write to .* choose another"):
        TensorBoardTracker(tmp_path / "file")
