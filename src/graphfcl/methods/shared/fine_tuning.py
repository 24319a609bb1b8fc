"""What several methods have in common besides their trunk: classes known by prototypes, and steps at a session."""

from typing import Any

import numpy as np
import torch

from graphfcl.graph import VisibleGraph
from graphfcl.methods.bases.encoder_learner import GraphLearner
from graphfcl.methods.learner import Labelled, Tensors
from graphfcl.methods.shared.prototype_memory import PrototypeMemory
from graphfcl.nn import GraphInputs
from graphfcl.stream import BaseSession, Session


class KnowsPrototypes(GraphLearner):
    """Classes are known by a :class:`PrototypeMemory`; a session adds prototypes, scores are −‖z − p_k‖²."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.memory = PrototypeMemory()

    def _begin(self, base: BaseSession) -> None:
        super()._begin(base)
        self.memory.train = (base.train, base.train_labels)

    def _learn(self, session: Session, inputs: GraphInputs) -> None:
        self.memory.learn(self.network, inputs, session, self.sizes["many"], len(self.classes_))

    def _keeps_weights(self) -> bool:
        return True

    def _table(self, inputs: GraphInputs, rows: np.ndarray | None) -> torch.Tensor:
        return self.network.table(inputs, rows)

    def restate(self, visible: VisibleGraph, train: Labelled, supports: Labelled) -> bool:  # noqa: ARG002
        if self.memory.kept is not None:
            return False
        self._answers = None
        self.memory.train, self.memory.supports = train, supports
        return True

    @property
    def forgets_exactly(self) -> bool:
        return self._keeps_weights() and self.memory.kept is None

    def drop_nodes(self, nodes: np.ndarray) -> None:
        self._answers = None
        self.memory.train, self.memory.supports = (
            (kept[0][stays], kept[1][stays])
            for kept in (self.memory.train, self.memory.supports)
            for stays in (~np.isin(kept[0], nodes),)
        )

    def _score_all(self, inputs: GraphInputs) -> torch.Tensor:
        return self.memory.scores(self.network, inputs, len(self.classes_))

    def _data_stored(self) -> dict[str, int]:
        return {**super()._data_stored(), **self.memory.stored()}

    def _own_tensors(self) -> Tensors:
        return {**super()._own_tensors(), **self.memory.tensors()}

    def _load_own(self, values: dict[str, Any], tensors: Tensors) -> None:
        super()._load_own(values, tensors)
        self.memory.load(tensors, self.device)


class FineTunes(GraphLearner):
    """A session takes (steps, rate) that validation sessions chose; where they could not, the mildest candidate."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.fine_tuning_: tuple[int, float] = (0, 0.0)

    def _fixed_steps(self) -> tuple[int, float] | None:
        """Steps that the settings fix."""
        steps = self.settings.fine_tuning_steps
        return None if steps is None else (steps, self.settings.fine_tuning_rate)

    def _mildest_steps(self) -> tuple[int, float]:
        """What a session takes if no class was held out to choose on."""
        return self.settings.fine_tuning[0] if self.settings.fine_tuning else (0, 0.0)

    def chosen(self) -> dict[str, Any]:
        steps, rate = self.fine_tuning_
        return {**super().chosen(), "fine_tuning_steps": steps, "fine_tuning_rate": rate}

    def _own_values(self) -> dict[str, Any]:
        return {**super()._own_values(), "fine_tuning": list(self.fine_tuning_)}

    def _load_own(self, values: dict[str, Any], tensors: Tensors) -> None:
        super()._load_own(values, tensors)
        self.fine_tuning_ = (values["fine_tuning"][0], values["fine_tuning"][1])
