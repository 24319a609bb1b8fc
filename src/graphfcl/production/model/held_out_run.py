"""A rehearsal: classes that are known well are held out, and arrive as classes of the future will.

A learner is fitted without the held-out classes, asked about their nodes (which are of unknown classes then), taught
half of them with K supports each, asked again, taught the rest, and asked once more. What it shows is kept as
:class:`HeldOutResult`; none of it depends on the scale of scores.
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from graphfcl.errors import DivergenceError, GraphfclWarning
from graphfcl.graph import VisibleNodes
from graphfcl.methods import Learner, Progress
from graphfcl.methods.learner import EncoderStore
from graphfcl.methods.progress import HELD_OUT
from graphfcl.methods.shared.validation_sessions import ValidationSessions, all_held_out
from graphfcl.production.answers.calibration import (
    KEPT,
    SUPPORTS_KEPT,
    HeldOutResult,
    heat_of,
    miss_quantiles,
    probabilities_of,
)
from graphfcl.production.answers.ood_scores import (
    MEASURES,
    Ruler,
    Stage,
    combined,
    fit_weights,
    measured,
    measured_left_out,
    separations,
)
from graphfcl.production.answers.row_values import RowValues
from graphfcl.production.answers.temperature import HIGHEST, LOWEST, best_slopes, best_temperature
from graphfcl.production.labels.label_store import LabelStore
from graphfcl.production.model.calibrating import evidence_of, left_out_scores, some_queries
from graphfcl.production.model.fit_checkpoints import FitCheckpoints
from graphfcl.stream import BaseSession, Session
from graphfcl.stream.split import draw_validation_columns

NAMES = tuple(each.name for each in MEASURES)


def run_held_out(
    base: BaseSession,
    fitted: Learner,
    another: Learner,
    encoders: EncoderStore,
    progress: Progress,
    checkpoints: FitCheckpoints,
) -> tuple[HeldOutResult, dict[str, float]]:
    """What a rehearsal teaches, and the AUROC of each measure of ood_score in it; nothing if none can be held.

    base: session 0 of the model. fitted: its learner. another: one of the same settings that is not fitted, for methods
    that have no :meth:`Learner.rehearsal` of their own. They hold out a fifth of the pseudo-novel classes, since they
    need some to train on; the others hold out all.
    """
    own = fitted.rehearsal()
    learner = another if own is None else own
    base = base if own is None else all_held_out(base)
    validation = ValidationSessions.draw(base, learner.seed)
    validation = validation.asking(some_queries(base.visible_graph, validation.asked, learner.seed))
    if not validation.has_new_classes:
        return HeldOutResult(), {}
    reduced, sessions = validation.rehearsal(base)
    try:
        checkpoints.restore("rehearsal", learner)
        watching = checkpoints.watching("rehearsal", progress, HELD_OUT)
        learner.fit(reduced if own is not None else with_validation_classes(reduced, learner.seed), watching, encoders)
    except DivergenceError as error:
        warnings.warn(
            f"the rehearsal without the held-out classes failed ({error}) Thresholds of classes that are learned later "
            "are those of the others: label more nodes of more classes to have them measured.",
            GraphfclWarning,
            2,
        )
        return HeldOutResult(), {}
    return _walk(learner, reduced, sessions, validation)


def _walk(
    learner: Learner, reduced: BaseSession, sessions: Sequence[Session], validation: ValidationSessions
) -> tuple[HeldOutResult, dict[str, float]]:
    """Ask, teach half, ask, teach the rest, ask."""
    nodes, columns = validation.asked
    of_known = columns < validation.known_count
    known = (nodes[of_known], columns[of_known])
    label_store = LabelStore.of((reduced.train, reduced.train_labels), known, reduced.classes)
    stages, asked, look = [], [], None
    for taught in (sessions[:0], sessions[: len(sessions) // 2], sessions[len(sessions) // 2 :]):
        for session in taught:
            learner.learn(session)
            label_store = label_store.with_supports(session.supports, session.support_labels, session.new_classes)
        if look is None or taught:
            look = Look(learner, reduced.visible_graph, label_store, known)
            stages.append(Stage(look.standard_of(nodes), columns, len(label_store.names)))
            asked.append(look.evidence.scores[look.visible.rows(nodes)])
    assert look is not None
    weights = fit_weights(stages)
    middle, slopes = _slopes(stages[1:], asked[1:], validation.known_count)
    few = ~of_known
    few_limit = float(np.quantile(combined(stages[-1].standard[few], weights), KEPT))
    left = look.standard_left_out()
    few_excess = None
    if left is not None and len(left):
        few_excess = few_limit - float(np.quantile(combined(left, weights), SUPPORTS_KEPT))
    found = HeldOutResult(weights, slopes, few_limit=few_limit, few_excess=few_excess)
    heats = np.exp(heat_of(stages[-1].standard, found))
    own = best_temperature(asked[-1][of_known] / heats[of_known, None], columns[of_known])
    misses = 1 - probabilities_of(asked[-1], np.exp(middle) * heats)[np.arange(nodes.size), columns]
    found = replace(
        found,
        few_heat=middle - float(np.log(own)),
        few_share=1 - validation.known_count / validation.class_count,
        few_misses=miss_quantiles(misses[few]),
    )
    return found, separations(stages[0], weights)


def _slopes(stages: Sequence[Stage], asked: Sequence[np.ndarray], known_count: int) -> tuple[float, dict[str, float]]:
    """How the temperature of a node follows its measures, from the stages in which few-shot classes are known: the log
    of it in the middle of all measures, and the slopes.

    asked: for each stage the (v, columns) scores of the nodes asked about. known_count: classes of session 0.
    """
    tempering = [place for place, each in enumerate(MEASURES) if each.tempers]
    width = max(len(scores[0]) for scores in asked)
    rows, columns, standard, weights = [], [], [], []
    for stage, scores in zip(stages, asked, strict=True):
        known = stage.columns < stage.learned
        wide = np.full((int(known.sum()), width), -np.inf)
        wide[:, : scores.shape[1]] = scores[known]
        rows.append(wide)
        columns.append(stage.columns[known])
        standard.append(np.clip(stage.standard[known][:, tempering], LOWEST, HIGHEST))
        weights.append(_by_kind(stage, known_count) / len(stages))
    start = best_temperature(asked[-1], stages[-1].columns)  # all classes are known then
    middle, found = best_slopes(
        np.concatenate(rows), np.concatenate(columns), np.concatenate(standard), np.concatenate(weights), start
    )
    return middle, {MEASURES[place].name: float(slope) for place, slope in zip(tempering, found, strict=True)}


def _by_kind(stage: Stage, known_count: int) -> np.ndarray:
    """(nodes known by then,) weights that sum to 1: few-shot classes and the others by their number, nodes of a kind
    the same."""
    columns = stage.columns[stage.columns < stage.learned]
    few = columns >= known_count
    share = 1 - known_count / stage.learned
    return np.where(few, share / max(1, few.sum()), (1 - share) / max(1, (~few).sum()))


class Look:
    """A learner in the middle of a rehearsal: its scores of all nodes and what they make of the measures.

    known: validation nodes of the classes of session 0, and their columns.
    """

    def __init__(
        self, learner: Learner, visible: VisibleNodes, label_store: LabelStore, known: tuple[np.ndarray, np.ndarray]
    ) -> None:
        self.learner, self.visible, self.label_store = learner, visible, label_store
        found = learner.all_scores(visible)
        rows = visible.rows(known[0])
        scores = RowValues.of(found).bounded()
        temperature = best_temperature(scores[rows], known[1])
        self.evidence = evidence_of(scores, temperature, visible, label_store, np.arange(scores.shape[1]))
        self.values = measured(self.evidence, NAMES)
        self.ruler = Ruler.of(NAMES, self.values[rows])

    def standard_of(self, nodes: np.ndarray) -> np.ndarray:
        """(nodes, measures) in spreads of known nodes."""
        return self.ruler.apply(self.values[self.visible.rows(nodes)])

    def standard_left_out(self) -> np.ndarray | None:
        """(supports, measures) of the supports while each is left out; None if the method cannot leave out."""
        left = left_out_scores(self.learner, self.visible, self.label_store, np.arange(self.evidence.scores.shape[1]))
        if left is None:
            return None
        rows = self.visible.rows(left.nodes)
        return self.ruler.apply(
            measured_left_out(self.evidence, self.values, NAMES, rows, RowValues.of(left.scores).bounded().whole())
        )


def with_validation_classes(reduced: BaseSession, seed: int) -> BaseSession:
    """A session 0 without held-out classes, with some of its pseudo-novel classes held out in their place."""
    first = len(reduced.base_classes)
    columns = draw_validation_columns(np.arange(first, len(reduced.classes)), reduced.way, seed + 1)
    return replace(reduced, validation_columns=columns)
