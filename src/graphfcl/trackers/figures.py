"""What a tracker writes of steps and sessions, whatever it writes to."""

from collections.abc import Callable, Mapping
from typing import Any

from graphfcl.evaluation import Evaluation

Write = Callable[[str, float, int], None]  # name of a figure, its value, number of the step or session


class Figures:
    """Names the figures of stages and sessions: ``pre-training/loss``, ``sessions/balanced_accuracy``.

    A stage that begins again, as in a second fit, has a number behind its name, so that its curve is one of its own.
    """

    def __init__(self, write: Write) -> None:
        self._write = write
        self._times: dict[str, int] = {}
        self._stage, self._step = "", 0

    def step(self, stage: str, step: int, loss: float | None, score: float | None) -> None:
        """Those that a step has."""
        if stage != self._stage or step < self._step:
            self._times[stage] = self._times.get(stage, 0) + 1
        self._stage, self._step = stage, step
        name = stage if self._times[stage] == 1 else f"{stage} {self._times[stage]}"
        for figure, value in (("loss", loss), ("score", score)):
            if value is not None:
                self._write(f"{name}/{figure}", float(value), step)

    def session(self, evaluation: Evaluation) -> None:
        """Every metric of the last session, and the seconds that it took to learn."""
        last = evaluation.metrics.sessions[-1]
        for name, value in {**last.values, "seconds": evaluation.seconds[-1]}.items():
            if value is not None:
                self._write(f"sessions/{name}", float(value), last.session)


def plain_parameters(parameters: Mapping[str, Any] | None) -> dict[str, str]:
    """Parameters as texts; those of a mapping inside, such as settings, one by one: ``settings.hops``."""
    plain: dict[str, str] = {}
    for name, value in (parameters or {}).items():
        inside = value if isinstance(value, Mapping) else None
        plain |= {str(name): str(value)} if inside is None else {f"{name}.{key}": str(v) for key, v in inside.items()}
    return plain
