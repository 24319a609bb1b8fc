"""Figures of a training as an event file of TensorBoard."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from graphfcl.errors import InputError
from graphfcl.evaluation import Evaluation
from graphfcl.methods import Learner, Progress
from graphfcl.methods.progress import progress_of
from graphfcl.trackers.figures import Figures, plain_parameters


class TensorBoardTracker(Progress):
    """Writes loss and score of each step, and the metrics of each session, to a folder that TensorBoard reads.

    folder: for one training; it is made. parameters: shown beside the figures. show: progress bars as well.

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
        self._figures = Figures(self._writer.add_scalar)
        self._others = ExitStack()
        self._beside = self._others.enter_context(progress_of(show))
        plain = plain_parameters(parameters)
        if plain:
            rows = [f"| {name} | {value} |" for name, value in plain.items()]
            self._writer.add_text("parameters", "\n".join(["| parameter | value |", "|---|---|", *rows]))

    def step(self, stage: str, step: int, total: int, *, loss: float | None = None, score: float | None = None) -> None:
        self._figures.step(stage, step, loss, score)
        self._beside.step(stage, step, total, loss=loss, score=score)

    def checkpoint(self, learner: Learner) -> None:
        self._beside.checkpoint(learner)

    def on_session(self, evaluation: Evaluation) -> None:
        """Give it to :func:`evaluate` as ``on_session``."""
        self._figures.session(evaluation)
        self._writer.flush()

    def close(self) -> None:
        """Everything is written; nothing more can be."""
        self._others.close()
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
