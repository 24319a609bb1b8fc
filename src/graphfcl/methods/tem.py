"""TEM: a head on propagated features that is retrained on a memory of vectors.

Xikun Zhang, Dongjin Song, Yixin Chen, Dacheng Tao: Topology-aware Embedding Memory for Continual Learning on Expanding
Networks (PDGNN-TEM). KDD 2024.

A node is represented by a fixed vector, its topology-aware embedding e. A stored e needs no edges of the node. Â and B
are defined as for SGC-ridge::

    e_v = [ n(XB)_v , a n(ÂÂXB)_v ]        n(·): centred on the visible graph of session 0, then scaled to unit length

A memory keeps at most ``budget`` nodes of each class, sampled in proportion to their coverage, which is a node's degree
plus one (coverage maximisation). A session trains the head on its supports and the memory::

    L = Σ_v w(y_v) ce(head(e_v), y_v) + λ/2 ‖W‖²,   w(c) = 1/(C n_c)     n_c: number of training nodes of class c

Differences from the published method:

- e contains a node's own features in addition to the propagated ones; ``own=false`` uses only the latter, as printed.
  Features are projected on leading singular vectors. Sampling uses degrees, where the released code uses a dense matrix
  of all pairs of nodes.
- Vectors become outdated as edges arrive. The memory therefore stores node numbers, and each session computes their
  vectors again. Under the track ``isolated``, where old nodes disappear, it stores the vectors, as printed.
- The head is trained from scratch at each session on the memory, to which the supports are added first. Nodes are
  ordered by number and classes by their first nodes. The head is thus a function of the set of labels, to the last
  digit, and ``restate`` is exact. Session 0 trains on all of its train nodes.
- The head is linear, and L-BFGS minimises its convex loss. With Adam, as printed, accuracy was 10 points lower, because
  it takes equal steps in all columns of e, including those of small singular values. Instead of steps and learning rate
  there is λ, chosen by validation nodes for session 0 and by validation sessions for later sessions.
- ``hidden`` adds a hidden layer to the head, as printed.
"""

from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import nn

from graphfcl.graph.interfaces import VisibleNodes
from graphfcl.methods.bases.closed_form_learner import Choice, ClosedFormLearner
from graphfcl.methods.blocks import NodeTables
from graphfcl.methods.learner import Learner, Progress
from graphfcl.methods.settings import CheckedSettings, Count, Number, Positive, Weight
from graphfcl.methods.shared.memories import SampledMemory
from graphfcl.methods.shared.supervised_training import class_balanced, cross_entropies
from graphfcl.methods.shared.training_state import LBFGS, check_finite
from graphfcl.methods.state import Labelled, Tensors
from graphfcl.metrics import balanced_accuracy, confusion_matrix
from graphfcl.nn import Linear, tensor_of
from graphfcl.stream.sessions import BaseSession, Session


@dataclass(frozen=True)
class TemSettings(CheckedSettings):
    """Settings of TEM. Symbols in brackets refer to the formulas in the module docstring."""

    rank: Count = 1024
    """Maximum number of columns of the basis B."""
    own: bool = True
    """Include a node's own features in its vector, in addition to the propagated ones."""
    hop_weight: Weight = 2.0
    """Weight of the propagated features (a)."""
    budget: Count = 100
    """Maximum number of nodes kept per class."""
    hidden: Number = 0
    """Width of the head's hidden layer; 0 for a linear head."""
    penalties: tuple[Positive, ...] = (1e-3, 3e-4, 3e-3, 1e-2)
    """Candidates for the penalty (λ); the first one wins a tie."""
    first_penalty: Positive | None = None
    """Fixed penalty of session 0; none lets validation nodes choose."""
    session_penalty: Positive | None = None
    """Fixed penalty of later sessions; none lets validation sessions choose."""
    iterations: Count = 60
    """Maximum number of L-BFGS iterations."""


class TemMemory(SampledMemory):
    """The sample of labelled nodes, and the head that was trained last.

    Attributes:
        class_count: Number of columns of the head.
        head: Weights of the head, in the form that :meth:`Tem.answers` expects.
    """

    saved = (*SampledMemory.rows, "class_count", "head")

    def __init__(self, budget: int, seed: int) -> None:
        super().__init__(budget, seed)
        self.class_count = 0
        self.head: Tensors = {}

    @property
    def counts(self) -> torch.Tensor:
        """(C,) number of nodes of each class in the sample."""
        return torch.bincount(torch.from_numpy(self.labels), minlength=self.class_count)

    @property
    def nbytes(self) -> int:
        return sum(self.stored().values())

    def plus(self, labelled: Labelled, weights: np.ndarray, vectors: torch.Tensor | None, count: int) -> Self:
        """Return a sample with further labelled nodes and at least ``count`` classes; see :meth:`add`."""
        sample = copy(self)
        sample.class_count = max(count, self.class_count, int(labelled[1].max(initial=-1)) + 1)
        sample.add(labelled, weights, vectors)
        return sample

    def stored(self) -> dict[str, int]:
        return {**super().stored(), "weights": sum(tensor.nbytes for tensor in self.head.values())}


class Tem(ClosedFormLearner):
    """PDGNN-TEM; the module docstring states the formulas and the differences from the published method.

    Attributes:
        memory: The sample of labelled nodes, and the head.
        choice: The values of λ for session 0 and for later sessions.
    """

    title = "a head on propagated features, trained again on a memory of sampled vectors"
    reference = (
        "Zhang, Song, Chen, Tao: Topology-aware Embedding Memory for Continual Learning on Expanding Networks. KDD 2024"
    )
    settings_type = TemSettings
    works_on_disk = False  # session 0 trains on the vectors of all its train nodes at once
    settings: TemSettings
    choices: ClassVar[dict[str, str]] = {"session_penalty": "penalties"}
    memory: TemMemory

    def __init__(self, settings: Any = None, *, seed: int = 0, device: str | torch.device = "cpu") -> None:
        super().__init__(settings, seed=seed, device=device)
        self.memory = self._empty(0)

    def _weights(self) -> tuple[float, float]:
        return float(self.settings.own), self.settings.hop_weight

    def _candidates(self) -> list[Choice]:
        first = self.settings.first_penalty or self.settings.penalties[0]
        return [{"first_penalty": first, **each} for each in super()._candidates()]

    # The memory, in place of statistics

    def _empty(self, size: int) -> TemMemory:  # noqa: ARG002
        return TemMemory(self.settings.budget, self.seed)

    @property
    def _statistics(self) -> TemMemory:
        return self.memory

    def _set_statistics(self, statistics: TemMemory) -> None:
        self.memory = statistics

    def _with(self, statistics: TemMemory, inputs: NodeTables, labelled: Labelled, count: int = 0) -> TemMemory:
        vectors = self._rows(inputs, labelled[0]) if self.track == "isolated" else None
        return statistics.plus(labelled, cover(inputs.visible, labelled[0]), vectors, count)

    # Session 0

    def _train(self, base: BaseSession, inputs: NodeTables, progress: Progress) -> None:
        super()._train(base, inputs, progress)
        fixed, best = self.settings.first_penalty, -1.0
        candidates = self.settings.penalties if fixed is None else (fixed,)
        queries = self._rows(inputs, base.validation)
        for place, penalty in enumerate(candidates):
            head = self._trained_on((base.train, base.train_labels), inputs, penalty)
            predicted = self._scores(queries, head).argmax(dim=1).cpu().numpy()
            score = balanced_accuracy(confusion_matrix(base.validation_labels, predicted, len(base.classes)))
            if score > best:
                best, self.choice, self.memory.head = score, {**self.choice, "first_penalty": penalty}, head
            progress.step("session 0", place + 1, len(candidates), score=best)

    def _trained_on(self, labelled: Labelled, inputs: NodeTables, penalty: float) -> Tensors:
        """Train a head on labelled nodes, ordered by node number."""
        order = np.argsort(labelled[0])
        nodes, labels = (part[order] for part in labelled)
        return self._trained(self._rows(inputs, nodes), labels, len(self.classes_), penalty)

    # Sessions and scores

    def _learn(self, session: Session, inputs: NodeTables) -> None:
        super()._learn(session, inputs)
        self._train_on_memory(inputs)

    def _train_on_memory(self, inputs: NodeTables) -> None:
        self.memory.head = self._solved(self.memory, inputs, self.sizes.many, self.choice)

    def _head(self, statistics: TemMemory, inputs: NodeTables, many: int, choice: Choice) -> Tensors:  # noqa: ARG002
        embeddings = statistics.points(lambda nodes: self._rows(inputs, nodes))
        return self._trained(embeddings, statistics.labels, statistics.class_count, choice["session_penalty"])

    @staticmethod
    def answers(vectors: torch.Tensor, head: Tensors) -> torch.Tensor:
        """Compute (m, C) logits of the head, which may have a hidden layer."""
        if "inner.weight" in head:
            vectors = torch.relu(vectors @ head["inner.weight"] + head["inner.bias"])
        return vectors @ head["outer.weight"] + head["outer.bias"]

    def _head_now(self, inputs: NodeTables) -> Tensors:  # noqa: ARG002
        return self.memory.head

    @torch.enable_grad()
    def _trained(self, embeddings: torch.Tensor, labels: np.ndarray, class_count: int, penalty: float) -> Tensors:
        """Train the head from scratch with equal class weights. Embeddings must be ordered by node number.

        A linear head starts at zero, since its loss is convex, and has no biases, since vectors are centred. Classes
        without a node get columns of zeros.
        """
        present, places = _in_order_of_first(labels)
        points, columns, width = self._vectors(embeddings), tensor_of(places, self.device), self.settings.hidden
        start = torch.Generator().manual_seed(self.seed)
        inner = Linear(self.blocks.width, width, start).to(self.device) if width else None
        outer = Linear(width or self.blocks.width, present.size, start).to(self.device)
        if inner is None:
            nn.init.zeros_(outer.weight)
            outer.bias.requires_grad_(False)
        layers = nn.ModuleDict({"outer": outer} if inner is None else {"inner": inner, "outer": outer})
        weights: Tensors = dict(layers.named_parameters())
        penalised = [each for name, each in weights.items() if name.endswith(".weight")]
        loss_of = class_balanced(cross_entropies)
        optimiser = LBFGS(
            [each for each in weights.values() if each.requires_grad],
            max_iter=self.settings.iterations,
            tolerance_grad=1e-6,
            tolerance_change=1e-8,
            line_search_fn="strong_wolfe",
        )

        def closure() -> torch.Tensor:
            optimiser.zero_grad()
            loss = loss_of(self.answers(points, weights), columns) + penalty / 2 * sum(
                (each**2).sum() for each in penalised
            )
            loss.backward()
            return loss

        check_finite(optimiser.step(closure), "training of the head", self.settings.iterations)
        head = {name: each.detach() for name, each in weights.items()}
        for name in ("outer.weight", "outer.bias"):
            wider = head[name].new_zeros(*head[name].shape[:-1], class_count)
            head[name] = wider.index_copy(-1, tensor_of(present, self.device), head[name])
        counts = torch.bincount(tensor_of(labels, self.device), minlength=class_count)
        return {**head, "counts": counts, "scales": self._scales}

    # Memory of labelled nodes

    @property
    def forgets_exactly(self) -> bool:
        return self.track != "isolated"

    def restate(self, visible: VisibleNodes, train: Labelled, supports: Labelled) -> bool:
        if not self.forgets_exactly:
            return False
        super().restate(visible, train, supports)
        inputs = self.cache.inputs(visible)
        if supports[0].size:
            self._train_on_memory(inputs)
        else:  # only session 0 is left, which trains on all train nodes
            self.memory.head = self._trained_on(train, inputs, self.choice["first_penalty"])
        return True

    def scores_without(
        self, visible: VisibleNodes, left_out: Labelled, train: Labelled, supports: Labelled
    ) -> np.ndarray | None:
        return Learner.scores_without(self, visible, left_out, train, supports)


def cover(visible: VisibleNodes, nodes: np.ndarray) -> np.ndarray:
    """Compute the (s,) coverage of nodes, their degree plus one."""
    return visible.degrees[visible.rows(nodes)].astype(np.float64) + 1


def _in_order_of_first(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct columns in order of first occurrence, and the (n,) position of each label among them."""
    columns, first, places = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return columns[order], np.argsort(order)[places]
