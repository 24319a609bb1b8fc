"""Validation sessions: the pseudo-novel classes that were held out arrive as if they were novel.

A method without meta-training holds out all of them at once, on a copy that knows base classes alone; a meta-trained
one, which needs some to train on, holds out a part of them at a time, and every class once. So all methods choose on
the same classes.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from graphfcl.methods.learner import Labelled, Progress, join_labelled, select_labelled
from graphfcl.methods.shared.episodes import Episode, NodePools, flatten, no_places, split_draw
from graphfcl.metrics import balanced_accuracy, confusion_matrix, harmonic_mean
from graphfcl.stream.sessions import BaseSession, Session


@dataclass(frozen=True, eq=False)
class KnownClasses:
    """All classes known at an incremental session, as fine-tuning sees them. Positions are columns.

    train: nodes of the ``many`` first classes (base and pseudo-novel); those after them are known by supports.
    supports: of the latter, in any order.
    tasks: classes of every task after the base task, oldest first.
    """

    train: Labelled
    supports: Labelled
    tasks: list[list[int]]
    base_count: int
    many: int
    class_count: int
    way: int

    @cached_property
    def pools(self) -> NodePools:
        return NodePools(*self.train, self.many)

    def sample(self, base_supports: int, queries: int, random: np.random.Generator) -> Episode:
        """Queries are train nodes, left out of their means, and supports, left out of their prototypes."""
        columns = np.arange(self.many)
        drawn = self.pools.draw(columns, np.full(self.many, base_supports + queries), random)
        kept, drawn_queries = split_draw(drawn, base_supports, queries)
        first, classes = flatten(drawn_queries, columns), self.supports[1]
        shots = np.bincount(classes, minlength=self.class_count)
        own = np.flatnonzero(shots[classes] > 1)  # a single support cannot be left out
        all_queries = join_labelled(first, select_labelled(self.supports, own))
        return self._episode(kept, all_queries, np.concatenate([no_places(first[0].size), own]))

    def with_queries(self, queries: Labelled, base_supports: int, random: np.random.Generator) -> Episode:
        """An episode with these labelled queries, as the protocol ``paper`` has them."""
        kept = self.pools.draw(np.arange(self.many), np.full(self.many, base_supports), random)
        return self._episode(kept, queries, no_places(queries[0].size))

    def _episode(self, kept: np.ndarray, queries: Labelled, own: np.ndarray) -> Episode:
        """kept: (many, width) the nodes that make the means of the classes with many labels."""
        supports = join_labelled(self.supports, flatten(kept, np.arange(self.many)))
        tasks, few = tasks_matrix(self.tasks, self.way), self.supports[0].size
        return Episode.of(self.class_count, supports, queries, own, tasks, base_count=self.base_count, few_shot=few)


def tasks_matrix(tasks: list[list[int]], way: int) -> np.ndarray:
    """(tasks, N) with -1 where a task has fewer than N classes; a task with more is split."""
    pieces = [task[start : start + way] for task in tasks for start in range(0, len(task), way)]
    matrix = np.full((len(pieces), way), -1, dtype=np.int64)
    for row, piece in zip(matrix, pieces, strict=True):
        row[: len(piece)] = piece
    return matrix


Predict = Callable[[Labelled], np.ndarray]
STEP_DRAWS = 3  # draws of supports on which choices are made


def held_out_folds(base: BaseSession, seed: int, count: int) -> list[tuple[int, ...]]:
    """Columns of the pseudo-novel classes in ``count`` parts of nearly equal size, drawn by the seed.

    Together they are all pseudo-novel classes, so that a method that holds out each part once chooses on as many
    classes as one that holds out all at once. A part has at least N classes, and at least N others are left to train
    on: with few pseudo-novel classes there are fewer parts, or smaller ones, or a single empty one. With a count of 1
    it is the first of two.
    """
    columns, way = np.array(base.pseudo_novel_columns, dtype=np.int64), base.way
    if columns.size <= way:
        return [()]
    least = -(-columns.size // (columns.size - way))
    parts = np.array_split(
        np.random.default_rng([seed, 4]).permutation(columns), max(least, min(count, columns.size // way))
    )
    return [tuple(sorted(part.tolist())) for part in parts[:count]]


@dataclass(frozen=True, eq=False)
class ValidationSessions:
    """Classes have local positions here: those known from the start first, then the held-out ones.

    held_out: columns of the held-out classes in session 0.
    train: (nodes, classes) train nodes of the known classes. supports: for each draw (held-out classes, K) train nodes
    of the held-out ones. queries: (nodes, classes) validation nodes of all.
    tasks: pseudo-novel tasks among the known classes.
    """

    held_out: tuple[int, ...]
    base_count: int
    known_count: int
    class_count: int
    train: Labelled
    supports: tuple[np.ndarray, ...]
    queries: Labelled
    tasks: tuple[tuple[int, ...], ...]
    way: int

    @classmethod
    def draw(
        cls, base: BaseSession, held_out_columns: Sequence[int], seed: int, draws: int = STEP_DRAWS
    ) -> "ValidationSessions":
        """Draw supports of the held-out classes several times; the draws do not change during a run."""
        held_out = np.array(held_out_columns, dtype=np.int64)
        known = np.setdiff1d(np.arange(len(base.classes)), held_out)
        place = np.empty(len(base.classes), dtype=np.int64)
        place[np.concatenate([known, held_out])] = np.arange(len(base.classes))
        pools = NodePools(base.train, base.train_labels, len(base.classes))
        random = np.random.default_rng([seed, 2])
        shots = np.full(held_out.size, base.shot)
        of_known = np.isin(base.train_labels, known)
        tasks = [[int(place[c]) for c in task if c not in held_out_columns] for task in base.pseudo_novel_tasks]
        return cls(
            held_out=tuple(held_out_columns),
            base_count=len(base.base_classes),
            known_count=known.size,
            class_count=len(base.classes),
            train=(base.train[of_known], place[base.train_labels[of_known]]),
            supports=tuple(pools.draw(held_out, shots, random) for _ in range(draws if held_out.size else 1)),
            queries=(base.validation, place[base.validation_labels]),
            tasks=tuple(tuple(task) for task in tasks if task),
            way=base.way,
        )

    @property
    def has_new_classes(self) -> bool:
        return self.class_count > self.known_count

    def only(self, draw: int) -> "ValidationSessions":
        """The same with one of the draws."""
        return replace(self, supports=(self.supports[draw],))

    @cached_property
    def draws(self) -> list["ValidationSessions"]:
        """One with each of the first draws, on which choices are made."""
        return [self.only(draw) for draw in range(min(STEP_DRAWS, len(self.supports)))]

    def with_queries(self, queries: Labelled) -> "ValidationSessions":
        """The same with these validation nodes."""
        return replace(self, queries=queries)

    def score(self, predict: Predict) -> float:
        """Mean over the draws of the harmonic mean of two balanced accuracies: of known and of held-out classes.

        Both count the same because about half of the classes of a stream are novel in the end, and the harmonic mean
        does not reward calling every node new. Without held-out classes it is the balanced accuracy.
        predict: from the supports of the held-out classes to a class for each query.
        """
        scores = []
        new = np.arange(self.class_count) >= self.known_count
        for supports in self.supports:
            confusion = confusion_matrix(self.queries[1], predict(self._flat(supports)), self.class_count)
            score = balanced_accuracy(confusion, ~new)
            if self.has_new_classes:
                score = harmonic_mean(score, balanced_accuracy(confusion, new))
            scores.append(score)
        return float(np.mean(scores))

    def score_of(self, predicted: np.ndarray) -> float:
        """The score of classes predicted for the queries, whatever the draw."""
        return self.score(lambda *_: predicted)

    def sessions(self) -> Iterator[KnownClasses]:
        """The held-out classes of the first draw, N at a time, as an incremental session sees them."""
        supports = self._flat(self.supports[0])
        tasks = [list(task) for task in self.tasks]
        for first in range(self.known_count, self.class_count, self.way):
            end = min(first + self.way, self.class_count)
            tasks.append(list(range(first, end)))
            here = select_labelled(supports, supports[1] < end)
            yield KnownClasses(self.train, here, list(tasks), self.base_count, self.known_count, end, self.way)

    def as_stream(self, base: BaseSession) -> tuple[BaseSession, list[Session]]:
        """Session 0 without the held-out classes, and the sessions of the first draw in which they arrive.

        The columns are the local positions. A learner that is fitted to the first and learns the others meets held-out
        classes as it will meet novel ones, except that the graph is always that of session 0.
        """
        known_names = [name for c, name in enumerate(base.classes) if c not in self.held_out]
        held_out_names = [base.classes[c] for c in self.held_out]
        validation = self.known_queries()
        reduced = replace(
            base,
            pseudo_novel_classes=tuple(known_names[self.base_count :]),
            train=self.train[0],
            train_labels=self.train[1],
            validation=validation[0],
            validation_labels=validation[1],
            pseudo_novel_tasks=self.tasks,
        )
        supports = self._flat(self.supports[0])
        sessions: list[Session] = []
        for place in range(0, len(held_out_names), self.way):
            new = tuple(held_out_names[place : place + self.way])
            here = np.isin(supports[1], self.known_count + place + np.arange(len(new)))
            labelled = select_labelled(supports, here)
            sessions.append(Session(len(sessions) + 1, new, *labelled, base.visible_graph, base.track))
        return reduced, sessions

    def known_queries(self) -> Labelled:
        """The validation nodes of the classes known from the start."""
        return select_labelled(self.queries, self.queries[1] < self.known_count)

    def _flat(self, supports: np.ndarray) -> Labelled:
        return flatten(supports, np.arange(self.known_count, self.class_count))


Candidate = TypeVar("Candidate")


def choose_over_draws(
    candidates: Sequence[Candidate],
    validation: ValidationSessions,
    scores_of: Callable[[ValidationSessions], Sequence[float]],
    progress: Progress,
    *,
    margin: float = 0.0,
) -> Candidate:
    """The candidate with the best mean score over draws of the supports, or the first if it is hardly better.

    scores_of: from one draw to the score of every candidate. margin: by so much another one must be better than the
    first. Without classes to hold out it is the first.
    """
    if len(candidates) == 1 or not validation.has_new_classes:
        return candidates[0]
    draws = validation.draws
    scores = np.zeros((len(draws), len(candidates)))
    for number, draw in enumerate(draws):
        scores[number] = scores_of(draw)
        best = float(scores[: number + 1].mean(axis=0).max())
        progress.step("choosing", number + 1, len(draws), score=best)
    means = scores.mean(axis=0)
    place = int(means.argmax())
    return candidates[place if means[place] > means[0] + margin else 0]
