"""Validation sessions: held-out pseudo-novel classes arrive in sessions as if they were novel.

A method without meta-training holds out all pseudo-novel classes at once, on a copy that is fitted to the base classes.
A meta-trained method needs some of them for training, so it holds out one part at a time, and every class once. All
methods thus choose on the same classes.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from graphfcl.methods.learner import Progress
from graphfcl.methods.shared.episodes import Episode, NodePools, flatten, no_places, split_draw
from graphfcl.methods.state import Labelled, join_labelled, select_labelled
from graphfcl.metrics import balanced_accuracy, confusion_matrix, harmonic_mean
from graphfcl.stream.sessions import BaseSession, Session


@dataclass(frozen=True, eq=False)
class KnownClasses:
    """All classes known at an incremental session, as input of fine-tuning.

    Args:
        train: (nodes, columns) of the first ``many`` classes, the base and pseudo-novel classes.
        supports: (nodes, columns) of all later classes, in any order.
        tasks: Class columns of each task after the base task, oldest first.
        base_count: Number of base classes.
        many: Number of classes with train nodes.
        class_count: Number of all classes.
        way: N, the number of classes of a task.
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
        """Draw an episode whose queries are train nodes and supports, each left out of its own prototype."""
        columns = np.arange(self.many)
        drawn = self.pools.draw(columns, np.full(self.many, base_supports + queries), random)
        kept, drawn_queries = split_draw(drawn, base_supports, queries)
        first, classes = flatten(drawn_queries, columns), self.supports[1]
        shots = np.bincount(classes, minlength=self.class_count)
        own = np.flatnonzero(shots[classes] > 1)  # a single support cannot be left out
        all_queries = join_labelled(first, select_labelled(self.supports, own))
        return self._episode(kept, all_queries, np.concatenate([no_places(first[0].size), own]))

    def with_queries(self, queries: Labelled, base_supports: int, random: np.random.Generator) -> Episode:
        """Draw an episode with given labelled queries, as in the protocol ``paper``."""
        kept = self.pools.draw(np.arange(self.many), np.full(self.many, base_supports), random)
        return self._episode(kept, queries, no_places(queries[0].size))

    def _episode(self, kept: np.ndarray, queries: Labelled, own: np.ndarray) -> Episode:
        """Make an episode. ``kept`` are the (many, width) nodes that form the means of classes with train nodes."""
        supports = join_labelled(self.supports, flatten(kept, np.arange(self.many)))
        tasks, few = tasks_matrix(self.tasks, self.way), self.supports[0].size
        return Episode.of(self.class_count, supports, queries, own, tasks, base_count=self.base_count, few_shot=few)


def tasks_matrix(tasks: list[list[int]], way: int) -> np.ndarray:
    """Make a (tasks, N) matrix, padded with −1. A task with more than N classes is split."""
    pieces = [task[start : start + way] for task in tasks for start in range(0, len(task), way)]
    matrix = np.full((len(pieces), way), -1, dtype=np.int64)
    for row, piece in zip(matrix, pieces, strict=True):
        row[: len(piece)] = piece
    return matrix


Predict = Callable[[Labelled], np.ndarray]
STEP_DRAWS = 3  # number of support draws on which choices are based


def held_out_folds(base: BaseSession, seed: int, count: int) -> list[tuple[int, ...]]:
    """Split the columns of the pseudo-novel classes randomly into ``count`` parts of nearly equal size.

    Each part has at least N classes and leaves at least N others for training. With few pseudo-novel classes there are
    fewer or smaller parts, or a single empty part. With a count of 1, the result is the first of two parts.
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
    """Sessions in which held-out classes arrive. Classes have local positions: known classes first, then held-out ones.

    Args:
        held_out: Columns of the held-out classes in session 0.
        base_count: Number of base classes.
        known_count: Number of known classes.
        class_count: Number of all classes.
        train: (nodes, classes) train nodes of the known classes.
        supports: (held-out classes, K) train nodes of the held-out classes, for each draw.
        queries: (nodes, classes) validation nodes of all classes.
        tasks: Pseudo-novel tasks among the known classes.
        way: N, the number of classes of a session.
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
        """Draw supports of the held-out classes several times. The draws depend on the seed only."""
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
        """Select one of the draws."""
        return replace(self, supports=(self.supports[draw],))

    @cached_property
    def draws(self) -> list["ValidationSessions"]:
        """Validation sessions with a single draw each, on which choices are based."""
        return [self.only(draw) for draw in range(min(STEP_DRAWS, len(self.supports)))]

    def with_queries(self, queries: Labelled) -> "ValidationSessions":
        """Replace the validation nodes."""
        return replace(self, queries=queries)

    def score(self, predict: Predict) -> float:
        """Average over the draws the harmonic mean of the balanced accuracies on known and on held-out classes.

        Both have the same weight because about half of the classes of a stream are novel at its end, and the harmonic
        mean does not reward predicting a new class for every node. Without held-out classes, the score is the balanced
        accuracy. ``predict`` maps the supports of the held-out classes to a class for each query.
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
        """Score predictions for the queries that are the same for all draws."""
        return self.score(lambda *_: predicted)

    def sessions(self) -> Iterator[KnownClasses]:
        """Yield the known classes after each session of N held-out classes of the first draw."""
        supports = self._flat(self.supports[0])
        tasks = [list(task) for task in self.tasks]
        for first in range(self.known_count, self.class_count, self.way):
            end = min(first + self.way, self.class_count)
            tasks.append(list(range(first, end)))
            here = select_labelled(supports, supports[1] < end)
            yield KnownClasses(self.train, here, list(tasks), self.base_count, self.known_count, end, self.way)

    def as_stream(self, base: BaseSession) -> tuple[BaseSession, list[Session]]:
        """Make a stream: session 0 without the held-out classes, and sessions of the first draw in which they arrive.

        Columns are the local positions. A learner meets the held-out classes as it will meet novel ones, except that
        all sessions have the graph of session 0.
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
        """Return the validation nodes of the known classes."""
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
    """Choose the candidate with the best mean score over draws of the supports.

    The first candidate is kept unless another one is better by more than ``margin``, and if there are no classes to
    hold out. ``scores_of`` maps a draw to the score of each candidate.
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
