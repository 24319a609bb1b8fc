"""The held-out run of a fit: classes with many labels are held out, and arrive later as few-shot classes will.

A learner is fitted without the held-out classes and scores their nodes, which belong to unknown classes at this stage.
It learns half of the classes with K supports each, scores the nodes again, learns the rest, and scores them once more.
Before it learns any class, groups are searched among the nodes that look unknown to it, and their purity is measured.
The result is a :class:`HeldOutResult`, which does not depend on the scale of scores.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphfcl.active.clusters import principal_components, unit_rows
from graphfcl.active.grouping import Crowd, PurityModel
from graphfcl.active.untrained import untrained_vectors
from graphfcl.errors import DivergenceError, GraphfclWarning
from graphfcl.graph import VisibleNodes
from graphfcl.methods import Learner, Progress
from graphfcl.methods.progress import HELD_OUT
from graphfcl.methods.shared.validation_sessions import ValidationSessions, held_out_folds
from graphfcl.methods.state import EncoderStore, Labelled, select_labelled
from graphfcl.production.answers.calibration import (
    KEPT,
    SUPPORTS_KEPT,
    HeldOutResult,
    heat_of,
    miss_quantiles,
)
from graphfcl.production.answers.ood_scores import (
    MEASURES,
    RobustScaler,
    Stage,
    combined,
    fit_weights,
    measured,
    measured_left_out,
    separations,
)
from graphfcl.production.answers.row_values import RowValues, probabilities_of
from graphfcl.production.answers.temperature import HIGHEST, LOWEST, best_slopes, best_temperature
from graphfcl.production.labels.label_store import LabelStore
from graphfcl.production.model.calibrating import evidence_of, left_out_scores, some_queries
from graphfcl.production.model.fit_checkpoints import FitCheckpoints
from graphfcl.stream import BaseSession, Session

NAMES = tuple(each.name for each in MEASURES)
GROUPED = 20_000  # most nodes that are searched for groups
COMPONENTS = 256  # principal components by which groups compare nodes; 64 do not separate classes with few words
HELD_OUT_PARTS = 5  # if pseudo-novel classes are needed for training, one of this many parts of them is held out


def run_held_out(
    base: BaseSession,
    fitted: Learner,
    another: Learner,
    encoders: EncoderStore,
    progress: Progress,
    checkpoints: FitCheckpoints,
) -> tuple[HeldOutResult, dict[str, float]]:
    """Return the result of a held-out run, and the AUROC of each measure; both empty if no class can be held out.

    Methods with a :meth:`Learner.calibration_learner` hold out all pseudo-novel classes. The others need some of these
    classes for training and hold out a fifth.

    Args:
        base: Session 0 of the model.
        fitted: Learner of the model.
        another: Unfitted learner with the same settings, for methods without a calibration learner.
        encoders: Encoders that the two fits share.
        progress: Receives the progress.
        checkpoints: Stores the state of the learner.
    """
    own = fitted.calibration_learner()
    learner = another if own is None else own
    held_out = base.pseudo_novel_columns if own is not None else held_out_folds(base, learner.seed, HELD_OUT_PARTS)[0]
    validation = ValidationSessions.draw(base, held_out, learner.seed)
    validation = validation.with_queries(some_queries(base.visible_graph, validation.queries, learner.seed))
    if not validation.has_new_classes:
        return HeldOutResult(), {}
    reduced, sessions = validation.as_stream(base)
    try:
        checkpoints.restore("calibration", learner)
        learner.fit(reduced, checkpoints.watching("calibration", progress, HELD_OUT), encoders)
    except DivergenceError as error:
        warnings.warn(
            f"the held-out calibration run failed ({error}) Classes that are learned later use the thresholds of "
            "session 0: label more nodes of more classes to have their own measured.",
            GraphfclWarning,
            2,
        )
        return HeldOutResult(), {}
    hidden = select_labelled((base.train, base.train_labels), np.isin(base.train_labels, validation.held_out))
    return _learn_and_measure(learner, reduced, sessions, validation, hidden)


def _learn_and_measure(
    learner: Learner,
    reduced: BaseSession,
    sessions: Sequence[Session],
    validation: ValidationSessions,
    hidden: Labelled,
) -> tuple[HeldOutResult, dict[str, float]]:
    """Measure the fitted learner, and again after each half of the held-out classes.

    ``hidden``: nodes of held-out classes that are not queries, and their columns in session 0.
    """
    nodes, columns = validation.queries
    is_known = columns < validation.known_count
    of_session_zero = (nodes[is_known], columns[is_known])
    labels = LabelStore.of((reduced.train, reduced.train_labels), of_session_zero, reduced.classes)
    half = len(sessions) // 2
    stages, scores, current, candidates = [], [], None, None
    for batch in (sessions[:0], sessions[:half], sessions[half:]):
        for session in batch:
            learner.learn(session)
            labels = labels.with_supports(session.supports, session.support_labels, session.new_classes)
        if current is None or batch:
            current = _LearnerStage(learner, reduced.visible_graph, labels, of_session_zero)
            candidates = candidates or _GroupCandidates.collect(current, hidden, validation)
            stages.append(Stage(current.standard_of(nodes), columns, len(labels.names)))
            scores.append(current.evidence.scores[current.visible.rows(nodes)])
    assert current is not None
    assert candidates is not None
    weights = fit_weights(stages)
    middle, slopes = _fit_slopes(stages[1:], scores[1:], validation.known_count)
    few = ~is_known
    few_limit = float(np.quantile(combined(stages[-1].standard[few], weights), KEPT))
    left = current.standard_left_out()
    few_excess = None
    if left is not None and len(left):
        few_excess = few_limit - float(np.quantile(combined(left, weights), SUPPORTS_KEPT))
    group_purity = candidates.group_purity(weights, current.visible)
    result = HeldOutResult(weights, slopes, few_limit=few_limit, few_excess=few_excess, group_purity=group_purity)
    heats = np.exp(heat_of(stages[-1].standard, result))
    own = best_temperature(scores[-1][is_known] / heats[is_known, None], columns[is_known])
    misses = 1 - probabilities_of(scores[-1], np.exp(middle) * heats)[np.arange(nodes.size), columns]
    result = replace(
        result,
        few_heat=middle - float(np.log(own)),
        few_share=1 - validation.known_count / validation.class_count,
        few_misses=miss_quantiles(misses[few]),
    )
    return result, separations(stages[0], weights)


def _fit_slopes(
    stages: Sequence[Stage], scores: Sequence[np.ndarray], known_count: int
) -> tuple[float, dict[str, float]]:
    """Fit the dependence of a node's temperature on its measures, from the stages in which few-shot classes are
    learned.

    ``scores`` are the (v, columns) scores of the queries for each stage, and ``known_count`` is the number of classes
    of session 0. Returns the log temperature at the median of all measures, and the slopes.
    """
    tempering = [place for place, each in enumerate(MEASURES) if each.tempers]
    width = max(len(each[0]) for each in scores)
    rows, columns, standard, weights = [], [], [], []
    for stage, each in zip(stages, scores, strict=True):
        learned = stage.columns < stage.learned
        wide = np.full((int(learned.sum()), width), -np.inf)
        wide[:, : each.shape[1]] = each[learned]
        rows.append(wide)
        columns.append(stage.columns[learned])
        standard.append(np.clip(stage.standard[learned][:, tempering], LOWEST, HIGHEST))
        weights.append(_weights_by_kind(stage, known_count) / len(stages))
    start = best_temperature(scores[-1], stages[-1].columns)  # all classes are known then
    middle, slopes = best_slopes(
        np.concatenate(rows), np.concatenate(columns), np.concatenate(standard), np.concatenate(weights), start
    )
    return middle, {MEASURES[place].name: float(slope) for place, slope in zip(tempering, slopes, strict=True)}


def _weights_by_kind(stage: Stage, known_count: int) -> np.ndarray:
    """Return (nodes of learned classes,) weights that sum to 1.

    The total weights of few-shot classes and of other classes are proportional to their numbers of classes; within each
    kind all nodes have equal weight.
    """
    columns = stage.columns[stage.columns < stage.learned]
    few = columns >= known_count
    share = 1 - known_count / stage.learned
    return np.where(few, share / max(1, few.sum()), (1 - share) / max(1, (~few).sum()))


@dataclass(frozen=True, eq=False)
class _GroupCandidates:
    """Nodes that a learner without the held-out classes may call unknown: nodes of these classes, and validation nodes.

    Attributes:
        rows: (n,) rows of the graph.
        columns: (n,) classes of the nodes.
        validation: (n,) whether the learner knows the class.
        standard: (n, measures) standardised measures.
        vectors: (n, d) vectors by which nodes are compared.
    """

    rows: np.ndarray
    columns: np.ndarray
    validation: np.ndarray
    standard: np.ndarray
    vectors: np.ndarray

    @classmethod
    def collect(cls, current: "_LearnerStage", hidden: Labelled, validation: ValidationSessions) -> "_GroupCandidates":
        """Collect the nodes; if there are more than ``GROUPED``, draw that many. ``hidden``: see
        :func:`_learn_and_measure`.
        """
        nodes = np.concatenate([hidden[0], validation.queries[0]])
        held_out = np.array(validation.held_out)
        order = np.argsort(held_out)
        place = validation.known_count + order[np.searchsorted(held_out, hidden[1], sorter=order)]
        columns = np.concatenate([place, validation.queries[1]])
        if nodes.size > GROUPED:
            chosen = np.random.default_rng([current.learner.seed, 37]).choice(nodes.size, GROUPED, replace=False)
            nodes, columns = nodes[chosen], columns[chosen]
        visible, rows = current.visible, current.visible.rows(nodes)
        vectors = current.learner.vectors_to_draw(visible, nodes) if visible.feature_count else None
        if vectors is None:
            vectors = untrained_vectors(visible, seed=current.learner.seed)[rows]
        vectors = np.nan_to_num(np.asarray(vectors, dtype=np.float32))
        return cls(rows, columns, columns < validation.known_count, current.standard_of(nodes), vectors)

    def group_purity(self, weights: dict[str, float], visible: VisibleNodes) -> dict[str, Any]:
        """Fit a :class:`PurityModel` to the nodes that look unknown; empty if there are too few."""
        ood_scores = combined(self.standard, weights)
        unknown = ood_scores > np.quantile(ood_scores[self.validation], KEPT)
        rows = self.rows[unknown]
        if rows.size == 0:
            return {}
        values = unit_rows(principal_components(self.vectors[unknown], COMPONENTS))
        model = PurityModel.of_hidden(Crowd.of(values, visible.neighbours_at(rows), rows), self.columns[unknown])
        return {} if model is None else model.as_json()


class _LearnerStage:
    """A learner at one stage of the run: its scores of all nodes, and their measures.

    ``validation``: nodes of the classes of session 0, and their columns.
    """

    def __init__(self, learner: Learner, visible: VisibleNodes, labels: LabelStore, validation: Labelled) -> None:
        self.learner, self.visible, self.labels = learner, visible, labels
        rows = visible.rows(validation[0])
        scores = RowValues.of(learner.all_scores(visible)).bounded()
        self.active = np.arange(scores.shape[1])
        temperature = best_temperature(scores[rows], validation[1])
        self.evidence = evidence_of(scores, temperature, visible, labels, self.active)
        self.values = measured(self.evidence, NAMES)
        self.scaler = RobustScaler.of(NAMES, self.values[rows])

    def standard_of(self, nodes: np.ndarray) -> np.ndarray:
        """Return (nodes, measures) measures in spreads of validation nodes."""
        return self.scaler.apply(self.values[self.visible.rows(nodes)])

    def standard_left_out(self) -> np.ndarray | None:
        """Return (supports, measures) measures of left-out supports; None if the method cannot leave them out."""
        left = left_out_scores(self.learner, self.visible, self.labels, self.active)
        if left is None:
            return None
        rows, scores = self.visible.rows(left[0]), RowValues.of(left[2]).bounded().whole()
        return self.scaler.apply(measured_left_out(self.evidence, self.values, NAMES, rows, scores))
