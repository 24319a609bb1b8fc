"""Parts of held-out classes: each is trained and validated by itself, and the median of their numbers is used."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from graphfcl import HagMeta, Progress, Protocol, Stream, load_dataset, make_stream
from graphfcl.methods.shared.episodes import Episode
from graphfcl.methods.shared.validation_sessions import ValidationSessions
from graphfcl.nn import GraphInputs
from tests.methods.test_checks import make

# Where the validation of each part is best. The first, the last, the mean, the smallest and the largest differ from
# the median.
BEST = (5, 35, 10, 15, 40)


@pytest.fixture(scope="module")
def stream() -> Stream:
    graph, _ = load_dataset("synthetic:nodes=400,edges=1500,classes=12,features=60,signal=1.0,skew=0.2")
    return make_stream(graph, Protocol(base=3, pseudo_novel=8, way=1, shot=3))


class Planned:
    """A learner whose validation is best where a plan says, and keeps what each part was shown."""

    def __init__(self, stream: Stream) -> None:
        settings = {"episodes": 60, "validate_every": 5, "patience": 3, "validation_window": 1, "validation_folds": 5}
        learner = make("hag-meta", **settings, refit=True, **{"pretraining.epochs": 1})
        assert isinstance(learner, HagMeta)
        self.learner, self.base = learner, stream.base
        self.trained: dict[str, set[int]] = {}
        self.held_out: list[set[int]] = []
        self._loss: Callable[..., torch.Tensor] = learner._episode_loss
        learner._episode_loss = self._watch  # type: ignore[method-assign]
        learner._validate = self._validate  # type: ignore[method-assign]

    def columns(self, nodes: Any) -> set[int]:
        here = np.isin(self.base.train, np.asarray(nodes))
        return set(self.base.train_labels[here].tolist())

    def _watch(self, inputs: GraphInputs, episode: Episode, *, by_class: bool = False) -> torch.Tensor:
        stage = self.learner.stage.value
        key = f"{stage} {len(self.learner.meta.best_by_fold)}" if stage == "meta-training" else stage
        self.trained.setdefault(key, set()).update(self.columns([*episode.supports, *episode.queries]))
        return self._loss(inputs, episode, by_class=by_class)

    def _validate(self, inputs: GraphInputs, validation: ValidationSessions) -> float:  # noqa: ARG002
        meta = self.learner.meta
        if len(self.held_out) == len(meta.best_by_fold):
            self.held_out.append(self.columns(validation.supports[0]))
        return -abs(meta.episode - BEST[len(meta.best_by_fold)])


class Totals(Progress):
    """Keeps the last number of steps of each stage."""

    def __init__(self) -> None:
        self.total: dict[str, int] = {}

    def step(self, stage: str, step: int, total: int, **_: float | None) -> None:  # noqa: ARG002
        self.total[stage] = total


def test_each_part_holds_out_its_own_classes_and_the_median_of_their_episodes_is_used(stream: Stream) -> None:
    planned, totals = Planned(stream), Totals()
    base, pseudo_novel = stream.base, set(range(3, 11))
    planned.learner.fit(base, totals)
    assert planned.learner.chosen()["episodes"] == int(np.median(BEST)) == 15
    assert totals.total["refit"] == 15
    assert len(planned.held_out) == len({frozenset(columns) for columns in planned.held_out}) == len(BEST)
    assert set.union(*planned.held_out) == pseudo_novel
    for part, held_out in enumerate(planned.held_out):
        assert len(held_out) in (1, 2)
        trained = planned.trained[f"meta-training {part}"] & pseudo_novel
        assert trained == pseudo_novel - held_out, "all classes that are not held out are trained on, and no other"
    assert planned.trained["refit"] & pseudo_novel == pseudo_novel
