"""Mecoin: a structured memory of keys and values, distilled from a student network on a frozen encoder.

Dong Li, Aijia Zhang, Junqi Gao, Biqing Qi: An Efficient Memory Module for Graph Few-Shot Class-Incremental Learning.
NeurIPS 2024.

The encoder is trained on session 0 with a linear head and then frozen; z is a node's embedding. The memory has B
codebooks with J keys and J values each. Each book looks up the key nearest to a node, and the logits of the node are
computed from the values of these keys::

    s = block(z) W_s,   x_b = [ s_b , R_bᵀ z ],   x' = block'(x_1 … x_B),   j_b = argmin_j ‖x'_b − key_{b,j}‖²
    logits(z) = 3 · mean_b value_{b, j_b}

The student is an MLP on z. A session takes steps on values and student, on stored nodes of every class::

    L = ½ KL(p ‖ q) + ½ KL(q ‖ p) + ce(p, y)          p: the student's softmax, q: the memory's; ce with smoothing 0.1

The memory learns from labels only through the student and cannot exceed what the student knows. ``chosen`` therefore
reports the accuracy of both, and ``answer=student`` predicts with the student.

The paper and the released code differ in the core of the method. This implementation follows the code, which produced
the published results. A lookup by argmin has no gradient, so ``block``, ``block'``, W_s, R and the keys keep their
random initial weights in the code. "Memory construction" is thus a fixed random map, and dropout in it spreads a node
over several keys during training. Keys are codes of random train nodes. A variant with learned attention is not
implemented: neither results nor formulas of it exist.

Differences from the released code:

- Its ``block`` attends over all nodes of a batch, so that predictions depend on the other nodes in the batch, and needs
  a matrix of all pairs. Here a node only attends to itself. ``block'`` attends across the books of a node in both.
- Session 0 trains the memory on all of its train nodes with equal class weights, instead of five nodes per class.
- Values have a column per class seen and grow with new classes, where the code knows the total number of classes from
  the start. A new column is 0, and the student represents a new class by the mean of its supports, as other heads do.
- Keys come from the train nodes of session 0. The code shuffles their features against the edges, and includes nodes of
  novel classes.
- Validation sessions choose steps and learning rate. In the code, labelled validation nodes of novel classes choose the
  epoch.
- There are fewer books and keys (32 × 32 instead of 100 × 800), so that a few supports reach a larger part of the keys,
  and more stored nodes per class (50 instead of 5). Values have five times the learning rate of the student, because a
  session takes at most hundreds of steps instead of 2,000, and lookups do not change meanwhile.
- Logits are adjusted by label counts as validation sessions choose. With hundreds of labels of some classes and five of
  others, both memory and student predict new classes too rarely.
- Nodes are looked up under a few draws of dropout once per session, and steps sample from these lookups.
- KL is computed from log-softmax. In the code it is −∞ or NaN where a softmax value rounds to 0.
- Under the track ``isolated``, embeddings of nodes are stored; otherwise their numbers.
"""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import torch
from torch import nn

from graphfcl.methods.bases.encoder_learner import EncoderLearner, Stage
from graphfcl.methods.learner import Progress
from graphfcl.methods.mecoin.memory import (
    Batches,
    Books,
    MecoinSettings,
    Points,
    Table,
    Teacher,
    both_logits,
    trained_copy,
)
from graphfcl.methods.shared.fine_tuning import FineTuning, choose_with_adjustment, open_choice
from graphfcl.methods.shared.heads import LogitAdjustment
from graphfcl.methods.shared.memories import SampledMemory
from graphfcl.methods.shared.parts import OwnAttributes, Part
from graphfcl.methods.shared.supervised_training import SupervisedTraining, head_training, session_zero
from graphfcl.methods.shared.training_state import EarlyStopping
from graphfcl.methods.shared.validation_sessions import ValidationSessions
from graphfcl.methods.state import Labelled, LearnerState, join_labelled
from graphfcl.metrics import balanced_accuracy, confusion_matrix
from graphfcl.nn import Encoder, GraphInputs, Linear, tensor_of
from graphfcl.stream.sessions import BaseSession, Session

CHECK_EVERY = 50  # number of steps of session 0 between two validations
PATIENCE = 4  # number of validations without a better accuracy after which session 0 stops


class MecoinNetwork(nn.Module):
    """The encoder, the fixed part of the memory (``books``) and the trained part (``table``)."""

    def __init__(self, encoder: Encoder, books: Books, table: Table) -> None:
        super().__init__()
        self.encoder, self.books, self.table = encoder, books, table

    def embed(self, inputs: GraphInputs, rows: np.ndarray | None = None) -> torch.Tensor:
        """Compute (r, h) embeddings of some rows or of all."""
        return self.encoder(self.encoder.rows(inputs, rows))


class Mecoin(EncoderLearner):
    """Mecoin; the module docstring states the formulas and the differences from the released code.

    Attributes:
        training: Training loop of the encoder at session 0.
        memory: Stored nodes for replay.
        accuracies: Accuracy of memory and student on the validation nodes of session 0.
    """

    title = "a structured memory of keys and values, distilled from an MLP on a frozen encoder"
    reference = (
        "Li, Zhang, Gao, Qi: An Efficient Memory Module for Graph Few-Shot Class-Incremental Learning. NeurIPS 2024"
    )
    settings_type = MecoinSettings
    lasting_tensors = ("network.encoder.", "network.books.")
    settings: MecoinSettings
    network: MecoinNetwork
    memory: SampledMemory
    training: SupervisedTraining

    def __init__(self, settings: Any = None, *, seed: int = 0, device: str | torch.device = "cpu") -> None:
        super().__init__(settings, seed=seed, device=device)
        self.memory = SampledMemory(self.settings.kept, seed)
        self.fine_tuning = FineTuning(self.settings)
        self.adjustment = LogitAdjustment(self.settings)
        self.accuracies: dict[str, float] = {}
        self._looked_up: tuple[torch.Tensor, torch.Tensor] | None = None  # embeddings of a graph, and their lookups

    def parts(self) -> tuple[Part, ...]:
        running = (self.training,) if self.stage == Stage.SESSION_ZERO else ()
        own = OwnAttributes(self, "accuracies")
        return (*super().parts(), *running, self.fine_tuning, self.adjustment, own)

    def chosen(self) -> dict[str, Any]:
        return {**super().chosen(), **{f"validation_{who}": round(each, 4) for who, each in self.accuracies.items()}}

    # Session 0

    def _build(self, encoder: Encoder, start: torch.Generator) -> MecoinNetwork:
        chosen, count = self.settings, len(self.classes_)
        head = Linear(chosen.size, count, start).to(self.device)
        self.training = head_training(encoder, head, chosen.pretraining, stage="session 0")
        return MecoinNetwork(encoder, Books(chosen.size, chosen, start), Table.empty(chosen, count, start))

    def _keeps_weights(self) -> bool:
        return True  # a session only replaces the table, which embeddings do not depend on

    def _train(self, base: BaseSession, inputs: GraphInputs, progress: Progress) -> None:
        if self.stage == Stage.PRE_TRAINED:
            self._choose_steps(base, inputs, progress)
            self._enter(Stage.SESSION_ZERO, progress)
        train, validation = session_zero(base)
        if self.stage == Stage.SESSION_ZERO:
            self.training.run(train, validation, inputs, self, progress)
            self._enter(Stage.FINISHING, progress)
        every, points = self._embedded(inputs)
        self.accuracies = self._teach_first(self.network.table, every, points(train), points(validation), progress)
        self._remember(train, points(train)[0])
        self.adjustment.add(base.train_labels, len(self.classes_))

    @torch.no_grad()
    def _embedded(self, inputs: GraphInputs) -> tuple[torch.Tensor, Callable[[Labelled], Points]]:
        """Compute the (n, h) embeddings of all nodes, and return them with a function that selects labelled nodes."""
        every = self.network.embed(inputs)

        def points(labelled: Labelled) -> Points:
            return every[self._rows(inputs, labelled[0])], tensor_of(labelled[1], self.device)

        return every, points

    def _teach_first(
        self, table: Table, every: torch.Tensor, train: Points, validation: Points, progress: Progress
    ) -> dict[str, float]:
        """Draw keys from the train nodes, and train a new table until validation accuracy stops improving.

        ``every`` are the (n, h) embeddings of all nodes.

        Returns:
            The best validation accuracies of memory and student.
        """
        chosen, books = self.settings, self.network.books
        books.draw_keys(train[0], self.generator)
        batches = Batches.draw(books, *train, chosen.draws, self.generator)
        places, labels, count = books.look_up(validation[0]), validation[1].cpu().numpy(), table.values.shape[1]
        teacher, stopping = Teacher(table, chosen, chosen.first_rate, self.generator), EarlyStopping(PATIENCE)
        accuracies: dict[int, dict[str, float]] = {}
        for step in range(0, chosen.first_steps, CHECK_EVERY):
            loss = teacher.teach(batches, min(CHECK_EVERY, chosen.first_steps - step), "teaching")
            accuracies[step] = {
                who: balanced_accuracy(confusion_matrix(labels, logits.argmax(dim=1).cpu().numpy(), count))
                for who, logits in both_logits(table, validation[0], places).items()
            }
            stop = stopping.check(accuracies[step][chosen.answer], step, table)
            done = min(step + CHECK_EVERY, chosen.first_steps)
            progress.step("teaching", done, done if stop else chosen.first_steps, loss=loss, score=stopping.score)
            if stop:
                break
        table.load_state_dict(stopping.weights)
        with torch.no_grad():
            table.centre = table.hidden(every).mean(dim=0)
        return accuracies[stopping.step]

    def _choose_steps(self, base: BaseSession, inputs: GraphInputs, progress: Progress) -> None:
        """Choose by the accuracy of a memory trained on the base classes that then learns all others in sessions.

        It uses the pre-trained encoder, which was trained on the base classes only and is not changed.
        """
        validation = open_choice(self, base)
        if validation is None:
            return
        (every, points), chosen, books = self._embedded(inputs), self.settings, self.network.books
        start = torch.Generator().manual_seed(self.seed)
        first = Table.empty(chosen, validation.known_count, start).to(self.device)
        self._teach_first(first, every, points(validation.train), points(validation.known_queries()), progress)
        kept = SampledMemory(chosen.kept, self.seed)
        kept.add(validation.train, np.ones(validation.train[0].size))
        queries = points(validation.queries)[0]
        places = books.look_up(queries)
        sessions = {draw: draw.as_stream(base)[1] for draw in validation.draws}
        batches = {}
        for draw, arriving in sessions.items():
            labelled = join_labelled(kept.labelled, *((each.supports, each.support_labels) for each in arriving))
            batches[draw] = Batches.draw(books, *points(labelled), chosen.draws, self.generator)

        def logits_after(draw: ValidationSessions, *steps: Any) -> tuple[torch.Tensor, LogitAdjustment]:
            table, end, learned = first, kept.nodes.size, LogitAdjustment()
            learned.add(validation.train[1], validation.known_count)
            for session in sessions[draw]:
                end += session.supports.size
                learned.add(session.support_labels, table.values.shape[1] + len(session.new_classes))
                supports = points((session.supports, session.support_labels))
                seen = batches[draw].some(torch.arange(end, device=self.device))
                table = trained_copy(table, supports, seen, learned.counts.size, steps, chosen, self.generator)
            return both_logits(table, queries, places)[chosen.answer], learned

        choose_with_adjustment(self, validation, logits_after, progress)

    def _rows(self, inputs: GraphInputs, nodes: np.ndarray) -> torch.Tensor:
        return torch.tensor(inputs.visible.rows(nodes), device=self.device)

    # Sessions and scores

    def _remember(self, labelled: Labelled, points: torch.Tensor) -> None:
        vectors = points.detach() if self.track == "isolated" else None
        self.memory.add(labelled, np.ones(labelled[0].size), vectors)

    @torch.no_grad()
    def _points(self, inputs: GraphInputs, nodes: np.ndarray) -> torch.Tensor:
        """Return the (nodes, h) embeddings of some nodes."""
        cached = self.cache.embeddings(inputs)
        return self._embed(inputs, inputs.visible.rows(nodes)) if cached is None else cached[self._rows(inputs, nodes)]

    def _learn(self, session: Session, inputs: GraphInputs) -> None:
        supports = self._points(inputs, session.supports)
        self._remember((session.supports, session.support_labels), supports)
        kept = self.memory.points(lambda nodes: self._points(inputs, nodes))
        labels, chosen = tensor_of(self.memory.labels, self.device), self.settings
        self.network.table = trained_copy(
            self.network.table,
            (supports, tensor_of(session.support_labels, self.device)),
            Batches.draw(self.network.books, kept, labels, chosen.draws, self.generator),
            len(self.classes_),
            self.fine_tuning.choice,
            chosen,
            self.generator,
        )
        self.adjustment.add(session.support_labels, len(self.classes_))

    def _score_all(self, inputs: GraphInputs) -> torch.Tensor:
        points, table = self._embeddings(inputs), self.network.table
        by_student = self.settings.answer == "student"
        return self.adjustment.apply(table.student(points) if by_student else table.memory(self._places(points)))

    def _places(self, points: torch.Tensor) -> torch.Tensor:
        """Return the (n, B) lookups of all nodes. The latest ones are cached, because sessions do not change them."""
        cached = self._looked_up
        if cached is None or cached[0] is not points:
            self._looked_up = cached = (points, self.network.books.look_up(points))
        return cached[1]

    def _forget_training(self) -> None:
        super()._forget_training()
        self._looked_up = None

    # State

    def load_state(self, state: LearnerState) -> None:
        super().load_state(state)
        self._looked_up = None

    def _copy_from(self, other: Self) -> None:
        super()._copy_from(other)
        self._looked_up = other._looked_up
