"""Probabilities of labelled nodes under models that were trained without their labels (cross-fitting).

The labels are split into K folds. For each fold, a model of the same method and settings is trained on the labels of
all other folds as ``fit`` trains it: session 0, then the few-shot classes. Its temperature is fitted to its own
validation nodes; it has no held-out calibration run. So nothing that judges a node has seen its label: neither encoder
nor class memory, head or calibration.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from graphfcl.errors import InputError
from graphfcl.graph.labels import natural_order
from graphfcl.methods import Progress
from graphfcl.methods.blocks.damaged_files import computed_again
from graphfcl.production.answers.answers import class_probabilities
from graphfcl.production.answers.calibration import Calibration
from graphfcl.production.graph import ModelGraph
from graphfcl.production.labels.label_store import LabelStore
from graphfcl.production.model.calibrating import compute_answers
from graphfcl.production.model.fitting import Labels, train_model
from graphfcl.production.model.parts import Configuration
from graphfcl.runtime.arrays import rank_in_run

FEW = 20  # labels of a class with fewer than this are dealt to the folds in turn


@dataclass(frozen=True, eq=False)
class Folds:
    """All labels of a model, split into folds.

    Attributes:
        names: Names of the C classes.
        nodes: (m,) numbers of labelled nodes, ascending.
        classes: (m,) positions in ``names``.
        fold_of: (m,) fold of each label; -1 for the only label of a class, which is trained on in all folds.
        count: Number of folds.
    """

    names: tuple[str, ...]
    nodes: np.ndarray
    classes: np.ndarray
    fold_of: np.ndarray
    count: int

    @classmethod
    def draw(cls, store: LabelStore, count: int, seed: int) -> "Folds":
        """Split the labels of a model.

        The fold of a node depends on its number and not on its label, so that changing a label does not change the
        model that judges it. Labels of a small class are dealt to the folds in turn, so that each fold leaves as many
        as possible.
        """
        store = store.without_accepted()
        names = tuple(sorted(store.classes, key=natural_order))
        place = {name: number for number, name in enumerate(names)}
        order = np.argsort(store.nodes)
        positions = np.array([place[name] for name in store.classes], dtype=np.int64)
        nodes, classes = store.nodes[order], positions[store.class_of_column()[store.columns[order]]]
        keys = np.random.default_rng([seed, 31]).random(int(nodes.max(initial=0)) + 1)[nodes]
        fold_of = (keys * count).astype(np.int64)
        by_class = np.lexsort((keys, classes))
        rank = rank_in_run(classes[by_class])
        sizes = np.bincount(classes)[classes[by_class]]
        dealt = (fold_of[by_class][np.arange(rank.size) - rank] + rank) % count
        fold_of[by_class] = np.where(sizes >= FEW, fold_of[by_class], np.where(sizes > 1, dealt, -1))
        return cls(names, nodes, classes, fold_of, count)

    def refuse_few_labels(self, shot: int) -> None:
        """Refuse folds that leave too few labels to train on, before anything is trained."""
        for fold in range(self.count):
            sizes = np.bincount(self.classes[self.fold_of != fold], minlength=len(self.names))
            enough = int((sizes >= shot + 2).sum())
            if enough < 2:
                raise InputError(
                    f"without one of {self.count} folds, {enough} classes have {shot + 2} labelled nodes or more, and "
                    f"training with {shot} shots needs two such classes: label more nodes, or take more folds."
                )


def cross_fit(
    graph: ModelGraph,
    folds: Folds,
    wanted: np.ndarray,
    configuration: Configuration,
    *,
    device: str,
    progress: Progress,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield for each fold the places of labels in ``folds``, and their (w, C) probabilities under a model without the
    fold.

    ``wanted``: (m,) bool, the labels to judge; a fold without such a label is skipped.
    """
    folds.refuse_few_labels(configuration.shot)
    graph = graph.with_refitted_features()
    for fold in np.unique(folds.fold_of[wanted & (folds.fold_of >= 0)]).tolist():
        judged, trained = np.flatnonzero(wanted & (folds.fold_of == fold)), folds.fold_of != fold
        labels = Labels(folds.nodes[trained], folds.classes[trained], folds.names)
        watching = _FoldProgress(progress, fold, folds.count)
        judge = partial(_judge, graph, labels, folds.nodes[judged], configuration, device, watching)
        with graph.in_use() as lock, graph.cleared(lock, lambda _, values: values):
            probabilities = computed_again(judge)
        yield judged, probabilities


def _judge(
    graph: ModelGraph,
    labels: Labels,
    nodes: np.ndarray,
    configuration: Configuration,
    device: str,
    progress: Progress,
) -> np.ndarray:
    """Return (w, C) probabilities of some nodes, given by their numbers, under a model trained on these labels."""
    fitted = train_model(graph, labels, configuration, device=device, progress=progress, calibration_run=False)
    parts = replace(fitted.parts, calibration=Calibration(stale=True))
    answers = compute_answers(parts, progress).of(parts.graph.visible.rows(nodes))
    probabilities = np.zeros((nodes.size, len(labels.names)), dtype=np.float32)
    columns = [labels.names.index(name) for name in parts.label_store.classes]
    probabilities[:, columns] = class_probabilities(parts.label_store, answers)
    return probabilities


class _FoldProgress(Progress):
    """Progress that names the fold before each stage."""

    def __init__(self, outer: Progress, fold: int, count: int) -> None:
        self.outer, self.prefix = outer, f"fold {fold + 1} of {count}, "

    def step(self, stage: str, step: int, total: int, *, loss: float | None = None, score: float | None = None) -> None:
        self.outer.step(self.prefix + stage, step, total, loss=loss, score=score)
