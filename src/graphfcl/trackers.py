"""Send metrics to TensorBoard or MLflow while a model trains."""

import re
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from graphfcl.errors import GraphfclWarning, InputError, in_one_line
from graphfcl.evaluation import Evaluation
from graphfcl.methods import Learner, Progress
from graphfcl.methods.progress import progress_of

__all__ = ["MLflowTracker", "TensorBoardTracker"]

AT_ONCE = 200  # figures in one request to MLflow
EVERY = 5.0  # seconds between two requests to MLflow
NOT_IN_NAMES = re.compile(r"[^\w\-. /]")  # characters that MLflow refuses in names
LONGEST = 500  # characters of a parameter


class _Tracker(Progress):
    """Names the figures of stages and sessions: ``pre-training/loss``, ``sessions/balanced_accuracy``.

    A stage that begins again, as in a second fit, gets a number after its name, so that it has its own curve.

    show: also show progress bars.
    """

    def __init__(self, show: bool | Progress) -> None:
        self._times: dict[str, int] = {}
        self._stage, self._step = "", 0
        self._others = ExitStack()
        self._beside = self._others.enter_context(progress_of(show))

    def step(self, stage: str, step: int, total: int, *, loss: float | None = None, score: float | None = None) -> None:
        if stage != self._stage or step < self._step:
            self._times[stage] = self._times.get(stage, 0) + 1
        self._stage, self._step = stage, step
        name = stage if self._times[stage] == 1 else f"{stage} {self._times[stage]}"
        for figure, value in (("loss", loss), ("score", score)):
            if value is not None:
                self._write(f"{name}/{figure}", float(value), step)
        self._beside.step(stage, step, total, loss=loss, score=score)

    def checkpoint(self, learner: Learner) -> None:
        self._beside.checkpoint(learner)

    def on_session(self, evaluation: Evaluation) -> None:
        """Write every metric of the last session; give it to :func:`evaluate` as ``on_session``."""
        last = evaluation.metrics.sessions[-1]
        for name, value in {**last.values, "seconds": evaluation.seconds[-1]}.items():
            if value is not None:
                self._write(f"sessions/{name}", float(value), last.session)
        self._flush()

    def __enter__(self) -> Self:
        return self

    def _write(self, name: str, value: float, step: int) -> None:
        """Keep a figure. step: number of the step or session."""
        raise NotImplementedError

    def _flush(self) -> None:
        """Hand over what was written."""
        raise NotImplementedError


class TensorBoardTracker(_Tracker):
    """Writes loss and score of each step, and the metrics of each session, to a folder that TensorBoard reads.

    folder: for one training; it is made. parameters: shown beside the figures. show: also show progress bars.

    It needs the extra ``graphfcl[tensorboard]``. Leaving a ``with`` closes it.
    """

    def __init__(
        self, folder: str | Path, *, parameters: Mapping[str, Any] | None = None, show: bool | Progress = False
    ) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise InputError(
                "TensorBoard is not installed, which a TensorBoardTracker needs: `pip install 'graphfcl[tensorboard]'`."
            ) from error
        try:
            self._writer: Any = SummaryWriter(str(folder))
        except OSError as error:
            reason = error.strerror or str(error)
            raise InputError(f"{folder} cannot be a folder of TensorBoard ({reason}): choose another.") from error
        super().__init__(show)
        rows = [f"| {name} | {value} |" for name, value in _plain(parameters).items()]
        if rows:
            self._writer.add_text("parameters", "\n".join(["| parameter | value |", "|---|---|", *rows]))

    def close(self) -> None:
        """Everything is written; nothing more can be."""
        self._others.close()
        self._writer.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, name: str, value: float, step: int) -> None:
        self._writer.add_scalar(name, value, step)

    def _flush(self) -> None:
        self._writer.flush()


class MLflowTracker(_Tracker):
    """Sends loss and score of each step, and the metrics of each session, to a run of MLflow.

    experiment: made if it is not there. uri: of the tracking server or a folder; by default what MLflow is set to.
    name: of the run. parameters: kept with the run. show: also show progress bars.

    It needs the extra ``graphfcl[mlflow]``. Leaving a ``with`` ends the run, as failed after an error. A server that
    takes no more figures leaves a warning and does not stop the training.
    """

    def __init__(
        self,
        experiment: str = "graphfcl",
        *,
        uri: str | None = None,
        name: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        show: bool | Progress = False,
    ) -> None:
        try:
            from mlflow import MlflowClient  # type: ignore[import-not-found,unused-ignore]
            from mlflow.entities import Metric  # type: ignore[import-not-found,unused-ignore]
            from mlflow.exceptions import MlflowException  # type: ignore[import-not-found,unused-ignore]
        except ImportError as error:
            raise InputError(
                "MLflow is not installed, which an MLflowTracker needs: `pip install 'graphfcl[mlflow]'`."
            ) from error
        self._metric, self._failures = Metric, (MlflowException, OSError)
        self._waiting: list[Any] = []
        self._sent, self._lost = time.monotonic(), False
        try:
            self._client = MlflowClient(tracking_uri=uri)
            there = self._client.get_experiment_by_name(experiment)
            number = self._client.create_experiment(experiment) if there is None else there.experiment_id
            self.run_id: str = self._client.create_run(number, run_name=name).info.run_id
            for key, value in _plain(parameters).items():
                self._client.log_param(self.run_id, NOT_IN_NAMES.sub("", key), value[:LONGEST])
        except self._failures as error:
            raise InputError(f"MLflow cannot make a run ({in_one_line(error)}): check uri and experiment.") from error
        super().__init__(show)

    def step(self, stage: str, step: int, total: int, *, loss: float | None = None, score: float | None = None) -> None:
        super().step(stage, step, total, loss=loss, score=score)
        if len(self._waiting) >= AT_ONCE or time.monotonic() - self._sent >= EVERY:
            self._flush()

    def close(self, status: str = "FINISHED") -> None:
        """The run ends. status: as MLflow calls it."""
        self._others.close()
        self._flush()
        if not self._lost:
            self._try(lambda: self._client.set_terminated(self.run_id, status))

    def __exit__(self, kind: object, *_: object) -> None:
        self.close("FINISHED" if kind is None else "FAILED")

    def _write(self, name: str, value: float, step: int) -> None:
        self._waiting.append(self._metric(NOT_IN_NAMES.sub("", name), value, int(1000 * time.time()), step))

    def _flush(self) -> None:
        waiting, self._waiting, self._sent = self._waiting, [], time.monotonic()
        if waiting and not self._lost:
            self._try(lambda: self._client.log_batch(self.run_id, metrics=waiting))

    def _try(self, send: Callable[[], object]) -> None:
        """Figures are not worth a training that took hours."""
        try:
            send()
        except self._failures as error:
            self._lost = True
            text = f"MLflow takes no more figures ({in_one_line(error)}): the training goes on without it."
            warnings.warn(text, GraphfclWarning, stacklevel=2)


def _plain(parameters: Mapping[str, Any] | None) -> dict[str, str]:
    """Parameters as texts; those of a mapping inside, such as settings, one by one: ``settings.hops``."""
    plain: dict[str, str] = {}
    for name, value in (parameters or {}).items():
        inside = value if isinstance(value, Mapping) else None
        plain |= {str(name): str(value)} if inside is None else {f"{name}.{key}": str(v) for key, v in inside.items()}
    return plain
