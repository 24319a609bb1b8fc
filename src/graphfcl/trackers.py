"""Trackers that send metrics to TensorBoard or MLflow while a model trains."""

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

BATCH_SIZE = 200  # values in one request to MLflow
SECONDS_BETWEEN_REQUESTS = 5.0  # to MLflow
NOT_IN_NAMES = re.compile(r"[^\w\-. /]")  # characters that MLflow refuses in names
LONGEST_PARAMETER = 500  # characters


class _Tracker(Progress):
    """Base of trackers: names each value by its stage, such as ``pre-training/loss`` or ``sessions/balanced_accuracy``.

    A stage that begins again, as in a second fit, gets a number after its name, so that it has its own curve. With
    ``show``, progress is also shown in bars or passed to another :class:`Progress`.
    """

    def __init__(self, show: bool | Progress) -> None:
        self._stage_counts: dict[str, int] = {}  # how often each stage began
        self._stage, self._step = "", 0
        self._exit_stack = ExitStack()
        self._shown = self._exit_stack.enter_context(progress_of(show))

    def step(self, stage: str, step: int, total: int, *, loss: float | None = None, score: float | None = None) -> None:
        if stage != self._stage or step < self._step:
            self._stage_counts[stage] = self._stage_counts.get(stage, 0) + 1
        self._stage, self._step = stage, step
        count = self._stage_counts[stage]
        name = stage if count == 1 else f"{stage} {count}"
        for quantity, value in (("loss", loss), ("score", score)):
            if value is not None:
                self._write(f"{name}/{quantity}", float(value), step)
        self._shown.step(stage, step, total, loss=loss, score=score)

    def checkpoint(self, learner: Learner) -> None:
        self._shown.checkpoint(learner)

    def on_session(self, evaluation: Evaluation) -> None:
        """Write every metric of the last session, and the seconds that learning it took.

        Pass this method to :func:`evaluate` or :func:`evaluate_active` as ``on_session``.

        Args:
            evaluation: Evaluation so far, with at least one session.
        """
        last = evaluation.metrics.sessions[-1]
        for name, value in {**last.values, "seconds": evaluation.seconds[-1]}.items():
            if value is not None:
                self._write(f"sessions/{name}", float(value), last.session)
        self._flush()

    def __enter__(self) -> Self:
        return self

    def _write(self, name: str, value: float, step: int) -> None:
        """Record a value at a step or session number."""
        raise NotImplementedError

    def _flush(self) -> None:
        """Send the values that are still buffered."""
        raise NotImplementedError


class TensorBoardTracker(_Tracker):
    """Write loss, score and session metrics to a folder for TensorBoard.

    This needs the extra ``graphfcl[tensorboard]``. Leaving a ``with`` block closes the tracker.

    Args:
        folder: Log folder of one training run. It is created if it does not exist.
        parameters: Parameters of the run, shown as a table beside the curves.
        show: Also show progress bars, or pass progress to another :class:`Progress`.

    Raises:
        InputError: If TensorBoard is not installed, or the folder cannot be written.

    Examples:
        >>> from graphfcl import TensorBoardTracker, evaluate, load_dataset, make_stream
        >>> graph, _ = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=30")
        >>> stream = make_stream(graph, way=1, shot=5, seed=0)
        >>> with TensorBoardTracker("logs/first", parameters={"method": "sgc-ridge"}) as tracker:
        ...     evaluate("sgc-ridge", stream, progress=tracker, on_session=tracker.on_session)
        Evaluation(3 sessions, average accuracy ... %)
    """

    def __init__(
        self, folder: str | Path, *, parameters: Mapping[str, Any] | None = None, show: bool | Progress = False
    ) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise InputError(
                "TensorBoardTracker needs TensorBoard, which is not installed: `pip install 'graphfcl[tensorboard]'`."
            ) from error
        try:
            self._writer: Any = SummaryWriter(str(folder))
        except OSError as error:
            reason = error.strerror or str(error)
            raise InputError(f"TensorBoard cannot write to {folder} ({reason}): choose another folder.") from error
        super().__init__(show)
        rows = [f"| {name} | {value} |" for name, value in _plain(parameters).items()]
        if rows:
            self._writer.add_text("parameters", "\n".join(["| parameter | value |", "|---|---|", *rows]))

    def close(self) -> None:
        """Write what is still buffered and close the log; nothing can be written afterwards."""
        self._exit_stack.close()
        self._writer.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, name: str, value: float, step: int) -> None:
        self._writer.add_scalar(name, value, step)

    def _flush(self) -> None:
        self._writer.flush()


class MLflowTracker(_Tracker):
    """Send loss, score and session metrics to a run of MLflow.

    This needs the extra ``graphfcl[mlflow]``. Leaving a ``with`` block ends the run, with status ``FAILED`` after an
    error. If the server stops accepting values, a warning is issued and training continues without MLflow.

    Args:
        experiment: Name of the experiment. It is created if it does not exist.
        uri: Tracking server or folder. The default is MLflow's own setting.
        name: Name of the run. By default MLflow chooses one.
        parameters: Parameters to store with the run. Nested mappings get names such as ``settings.hops``.
        show: Also show progress bars, or pass progress to another :class:`Progress`.

    Attributes:
        run_id: MLflow's id of the run.

    Raises:
        InputError: If MLflow is not installed, or cannot create the run.

    Examples:
        >>> from graphfcl import MLflowTracker, evaluate
        >>> def evaluate_with_mlflow(stream):
        ...     with MLflowTracker("shop", parameters={"method": "sgc-ridge"}) as tracker:
        ...         return evaluate("sgc-ridge", stream, progress=tracker, on_session=tracker.on_session)
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
                "MLflowTracker needs MLflow, which is not installed: `pip install 'graphfcl[mlflow]'`."
            ) from error
        self._metric, self._failures = Metric, (MlflowException, OSError)
        self._buffer: list[Any] = []
        self._last_request, self._disconnected = time.monotonic(), False
        try:
            self._client = MlflowClient(tracking_uri=uri)
            existing = self._client.get_experiment_by_name(experiment)
            experiment_id = self._client.create_experiment(experiment) if existing is None else existing.experiment_id
            self.run_id: str = self._client.create_run(experiment_id, run_name=name).info.run_id
            for key, value in _plain(parameters).items():
                self._client.log_param(self.run_id, NOT_IN_NAMES.sub("", key), value[:LONGEST_PARAMETER])
        except self._failures as error:
            raise InputError(f"MLflow cannot create a run ({in_one_line(error)}): check uri and experiment.") from error
        super().__init__(show)

    def step(self, stage: str, step: int, total: int, *, loss: float | None = None, score: float | None = None) -> None:
        super().step(stage, step, total, loss=loss, score=score)
        if len(self._buffer) >= BATCH_SIZE or time.monotonic() - self._last_request >= SECONDS_BETWEEN_REQUESTS:
            self._flush()

    def close(self, status: str = "FINISHED") -> None:
        """Send what is still buffered and end the run.

        Args:
            status: Final status of the run: ``FINISHED``, ``FAILED`` or ``KILLED``.
        """
        self._exit_stack.close()
        self._flush()
        if not self._disconnected:
            self._try(lambda: self._client.set_terminated(self.run_id, status))

    def __exit__(self, kind: object, *_: object) -> None:
        self.close("FINISHED" if kind is None else "FAILED")

    def _write(self, name: str, value: float, step: int) -> None:
        self._buffer.append(self._metric(NOT_IN_NAMES.sub("", name), value, int(1000 * time.time()), step))

    def _flush(self) -> None:
        values, self._buffer, self._last_request = self._buffer, [], time.monotonic()
        if values and not self._disconnected:
            self._try(lambda: self._client.log_batch(self.run_id, metrics=values))

    def _try(self, send: Callable[[], object]) -> None:
        """Send a request. After a failure, warn and send no more: training must not stop for it."""
        try:
            send()
        except self._failures as error:
            self._disconnected = True
            text = f"MLflow accepts no more values ({in_one_line(error)}): training continues without it."
            warnings.warn(text, GraphfclWarning, stacklevel=2)


def _plain(parameters: Mapping[str, Any] | None) -> dict[str, str]:
    """Convert parameters to texts; entries of a nested mapping get names such as ``settings.hops``."""
    plain: dict[str, str] = {}
    for name, value in (parameters or {}).items():
        if isinstance(value, Mapping):
            plain |= {f"{name}.{key}": str(entry) for key, entry in value.items()}
        else:
            plain[str(name)] = str(value)
    return plain
