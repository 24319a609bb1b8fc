"""What a model is asked: classes, probabilities, sets, labels, reasons."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphfcl.production.answers import Predictions, class_probabilities, class_sets, predictions
from graphfcl.production.label_table import Columns, label_table
from graphfcl.production.live_model import LiveModel

if TYPE_CHECKING:
    from graphfcl.asking import Strategy
    from graphfcl.production.grouping import Group
    from graphfcl.production.model_info import ModelInfo
    from graphfcl.production.spreading import Spread
    from graphfcl.production.suggesting import Suggestion


class AnsweringModel(LiveModel):
    """A model that answers. Each call takes the state of its moment and works on it."""

    @property
    def classes_(self) -> tuple[str, ...]:
        """Names of all classes it can answer, in the order in which they were learned."""
        return self._current().parts.for_answers().ledger.classes

    @property
    def node_ids_(self) -> np.ndarray:
        """The user's ids of all nodes."""
        return self._current().ids()

    def predict(self, nodes: Sequence[Any] | None = None) -> np.ndarray:
        """(n,) the likeliest class of each node, or of all nodes in the order of ``node_ids_``."""
        state = self._current()
        ledger = state.parts.for_answers().ledger
        probabilities = class_probabilities(ledger, state.asked_about(nodes)[1])
        return np.array(ledger.classes, dtype=object)[probabilities.argmax(axis=1)]

    def predict_proba(self, nodes: Sequence[Any] | None = None) -> np.ndarray:
        """(n, classes) probabilities in the order of ``classes_``; each row sums to 1."""
        state = self._current()
        return class_probabilities(state.parts.for_answers().ledger, state.asked_about(nodes)[1])

    def prediction_sets(self, nodes: Sequence[Any] | None = None, *, coverage: float = 0.9) -> list[tuple[str, ...]]:
        """For each node the classes that hold the true one with this probability, likeliest first.

        It holds over known nodes as they come (split conformal prediction on validation nodes); for classes that were
        learned after the fit it is an estimate, from the rehearsal.
        """
        state = self._current()
        ledger = state.parts.for_answers().ledger
        probabilities = class_probabilities(ledger, state.asked_about(nodes)[1])
        return class_sets(state.parts.calibration, ledger, probabilities, coverage)

    def unknown_scores(self, nodes: Sequence[Any] | None = None) -> np.ndarray:
        """(n,) the share of known nodes that look less strange; above ``calibration_.threshold`` a node is unknown."""
        state = self._current()
        return state.parts.calibration.unknown_scores(state.asked_about(nodes)[1].strangeness)

    def predictions(self, nodes: Sequence[Any] | None = None, *, coverage: float | None = None) -> Predictions:
        """Columns ``node, class, probability, unknown_score, unknown`` of some nodes, or of all.

        coverage: also ``set``, that of :meth:`prediction_sets`.
        """
        state = self._current()
        ids, answers = state.asked_about(nodes)
        return predictions(state.parts.calibration, state.parts.for_answers().ledger, ids, answers, coverage)

    def labels(self, nodes: Sequence[Any] | None = None) -> Columns:
        """Columns ``node, class, part, by, when`` and those kept with labels, of some nodes, or of all with a label."""
        state = self._current()
        return label_table(state.parts.ledger, state.names(), nodes)

    def explain(self, node: Any, *, top: int = 5) -> dict[str, Any]:
        """Why a node got its class: classes in competition, blocks, features and neighbours that decided.

        Only some methods can say. Values are parts of the difference between the logits of the
        first and the second class.
        """
        from graphfcl.production.explanation import explain_node

        state = self._current()
        number, answer = int(state.parts.graph.numbers_of([node])[0]), state.asked_about([node])[1]
        with state.asked.alone():
            return explain_node(state.parts, number, answer, top)

    # What to teach next

    def suggest(
        self, budget: int = 20, *, strategy: "str | type[Strategy]" = "auto", seed: int = 0
    ) -> "tuple[Suggestion, ...]":
        """Nodes worth labelling, best first, each with why and what the model thinks; at most ``budget``.

        strategy: a name (``auto``, ``typical``, ``uncertain``, ``unknown``, ``random``) or a class of your own.
        """
        from graphfcl.production.suggesting import suggest_for_model

        return suggest_for_model(self._current(), budget, strategy, seed)

    def groups(self, count: int = 5, *, seed: int = 0) -> "tuple[Group, ...]":
        """A few tight groups among nodes that look like none of the classes, the tightest first; perhaps none.

        :meth:`GraphClassifier.name_group` teaches one.
        """
        from graphfcl.production.grouping import find_groups

        return find_groups(self._current(), count, seed)

    def spread(self, nodes: Sequence[Any]) -> "Spread":
        """How spread some nodes are, and whether they are too alike to teach a class well."""
        from graphfcl.production.spreading import spread_of

        return spread_of(self._current(), nodes)

    def info(self, *, full: bool = False) -> "ModelInfo":
        """What the model is, and whether a refit is due (``ageing.py``); next to nothing of a folder is read for it.

        full: count the nodes called unknown even if that takes a forward pass; it is only needed for a version of which
        neither history nor cache has their share.
        """
        from graphfcl.production.model_info import info_of

        folder = None if self._versions is None else self._versions.path
        return info_of(self._current(), self.configuration, folder, full=full)
