"""Figures of a training as a run of MLflow."""

import re
import time
import warnings
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, Self

from graphfcl.errors import GraphfclWarning, InputError, in_one_line
from graphfcl.evaluation import Evaluation
from graphfcl.methods import Learner, Progress
from graphfcl.methods.progress import progress_of
from graphfcl.trackers.figures import Figures, plain_parameters

AT_ONCE = 200  # figures that are sent together
EVERY = 5.0  # seconds between two sendings while figures come
STRANGE = re.compile(r"[^\w\-. /]")  # characters that MLflow takes in no name
LONGEST = 500  # characters of a parameter


class MLflowTracker(Progress):
    """Sends loss and score of each step, and the metrics of each session, to a run of MLflow.

    experiment: made if it is not there. uri: of the tracking server or a folder; by default what MLflow is set to.
    name: of the run. parameters: kept with the run. show: progress bars as well.

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
        self._figures = Figures(self._write)
        try:
            self._client = MlflowClient(tracking_uri=uri)
            found = self._client.get_experiment_by_name(experiment)
            number = self._client.create_experiment(experiment) if found is None else found.experiment_id
            self.run_id: str = self._client.create_run(number, run_name=name).info.run_id
            for key, value in plain_parameters(parameters).items():
                self._client.log_param(self.run_id, STRANGE.sub("", key), value[:LONGEST])
        except self._failures as error:
            raise InputError(f"MLflow cannot make a run ({in_one_line(error)}): check uri and experiment.") from error
        self._others = ExitStack()
        self._beside = self._others.enter_context(progress_of(show))

    def step(self, stage: str, step: int, total: int, *, loss: float | None = None, score: float | None = None) -> None:
        self._figures.step(stage, step, loss, score)
        self._beside.step(stage, step, total, loss=loss, score=score)
        if len(self._waiting) >= AT_ONCE or time.monotonic() - self._sent >= EVERY:
            self._send()

    def checkpoint(self, learner: Learner) -> None:
        self._beside.checkpoint(learner)

    def on_session(self, evaluation: Evaluation) -> None:
        """Give it to :func:`evaluate` as ``on_session``."""
        self._figures.session(evaluation)
        self._send()

    def close(self, status: str = "FINISHED") -> None:
        """The run ends. status: as MLflow calls it."""
        self._others.close()
        self._send()
        if not self._lost:
            self._try(lambda: self._client.set_terminated(self.run_id, status))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.close("FINISHED" if kind is None else "FAILED")

    def _write(self, name: str, value: float, step: int) -> None:
        self._waiting.append(self._metric(STRANGE.sub("", name), value, int(1000 * time.time()), step))

    def _send(self) -> None:
        waiting, self._waiting, self._sent = self._waiting, [], time.monotonic()
        if waiting and not self._lost:
            self._try(lambda: self._client.log_batch(self.run_id, metrics=waiting))

    def _try(self, act: Any) -> None:
        """Figures are not worth a training that took hours."""
        try:
            act()
        except self._failures as error:
            self._lost = True
            said = f"MLflow takes no more figures ({in_one_line(error)}): the training goes on without it."
            warnings.warn(said, GraphfclWarning, stacklevel=2)
