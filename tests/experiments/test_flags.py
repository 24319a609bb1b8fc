"""Flags of a learner are read once, when a run starts: sessions and result follow what was read."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from graphfcl import (
    NO_STORE,
    SILENT,
    BaseSession,
    EncoderStore,
    Learner,
    PaperSession,
    PooledSession,
    Progress,
    Protocol,
    Session,
    Stream,
    VisibleNodes,
    evaluate,
    make_stream,
    register_method,
)
from graphfcl.experiments import Run, run
from graphfcl.methods import registry
from tests.graphs import random_graph


class Lying(Learner):
    """Answers the flag that a test names with one value after the other, then with the last one for ever."""

    values: ClassVar[list[bool]] = []
    flag: ClassVar[str] = ""
    handed: ClassVar[list[type]] = []

    def _read(self, flag: str) -> bool:
        if flag != self.flag:
            return False
        return self.values.pop(0) if len(self.values) > 1 else self.values[0]

    @property
    def uses_pool_labels(self) -> bool:  # type: ignore[override]
        return self._read("uses_pool_labels")

    @property
    def trains_on_query_labels(self) -> bool:  # type: ignore[override]
        return self._read("trains_on_query_labels")

    @property
    def control(self) -> bool:  # type: ignore[override]
        return self._read("control")

    def fit(
        self,
        base: BaseSession,
        progress: Progress = SILENT,  # noqa: ARG002
        encoders: EncoderStore = NO_STORE,  # noqa: ARG002
    ) -> None:
        self.classes_ = base.classes

    def learn(self, session: Session) -> None:
        self.handed.append(type(session))
        self.classes_ += session.new_classes

    def scores(self, visible: VisibleNodes, nodes: np.ndarray) -> np.ndarray:  # noqa: ARG002
        return np.ones((nodes.size, len(self.classes_)))


@pytest.fixture(autouse=True)
def _one_registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(registry.REGISTRY, "registered", {})
    register_method(Lying)
    yield
    Lying.values, Lying.flag = [], ""
    Lying.handed.clear()


def stream_with(**changes: Any) -> Stream:
    return make_stream(random_graph(0, [30] * 6), Protocol(base=2, pseudo_novel=1, way=1, shot=3), seed=0, **changes)


def lying(flag: str, *values: bool) -> type[Lying]:
    Lying.flag, Lying.values = flag, [*values]
    Lying.handed.clear()
    return Lying


KINDS = [("uses_pool_labels", "strict", PooledSession), ("trains_on_query_labels", "paper", PaperSession)]


@pytest.mark.parametrize(("flag", "name", "kind"), KINDS)
@pytest.mark.parametrize("first", [True, False])
def test_evaluate_reads_a_flag_once(flag: str, name: str, kind: type[Session], first: bool) -> None:
    evaluation = evaluate(lying(flag, first, not first)(), stream_with(name=name))
    assert Lying.handed == [kind if first else Session] * 3
    assert getattr(evaluation.flags, flag) is first


@pytest.mark.parametrize(("flag", "name", "kind"), KINDS)
@pytest.mark.parametrize("first", [True, False])
def test_the_result_says_what_the_learner_received(flag: str, name: str, kind: type[Session], first: bool) -> None:
    lying(flag, first, not first)
    result = run(Run(stream_with(name=name), "lying", {}))
    assert Lying.handed == [kind if first else Session] * 3
    recorded = {"uses_pool_labels": "uses_pool_labels", "trains_on_query_labels": "trained_on_query_labels"}[flag]
    assert (result[recorded], result["flags"][flag]) == (first, first)


class Interrupted(Exception):
    pass


class After(Progress):
    """Raises after the step of a session."""

    def __init__(self, session: int) -> None:
        self.session = session

    def step(self, stage: str, step: int, total: int, *, loss: float | None = None, score: float | None = None) -> None:  # noqa: ARG002
        if stage == "sessions" and step == self.session:
            raise Interrupted


@pytest.mark.parametrize(("flag", "name", "kind"), KINDS)
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("session", [0, 1])
def test_a_resumed_run_keeps_the_flags_of_its_start(
    tmp_path: Path, flag: str, name: str, kind: type[Session], first: bool, session: int
) -> None:
    """The resumed run would read the opposite value."""
    job = Run(stream_with(name=name), "lying", {})
    lying(flag, first, not first)
    with pytest.raises(Interrupted):
        run(job, tmp_path, progress=After(session))
    result = run(job, tmp_path, resume=True)
    assert Lying.handed == [kind if first else Session] * 3
    assert result["flags"][flag] is first


def test_every_flag_of_the_contract_is_recorded() -> None:
    declared = {name for name, value in vars(Learner).items() if isinstance(value, bool) and not name.endswith("_")}
    lying("control", True, False)
    result = run(Run(stream_with(), "lying", {}))
    assert set(result["flags"]) == declared
    assert result["flags"]["control"] is True
