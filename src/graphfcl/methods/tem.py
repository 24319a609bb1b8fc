"""TEM: a head on propagated features, and a memory of vectors to train it with again.

Xikun Zhang, Dongjin Song, Yixin Chen, Dacheng Tao: Topology-aware Embedding Memory for Continual Learning on Expanding
Networks (PDGNN-TEM). KDD 2024.

A node is known by a vector that no training touches, its topology-aware embedding e. Whoever keeps e needs no edge of
the node any more. Â and B as in SGC-ridge::

    e_v = [ n(XB)_v , a n(ÂÂXB)_v ]        n(·): minus the mean over session 0's visible graph, then of unit length

A memory keeps at most ``budget`` nodes of each class, sampled with probability in proportion to what they cover: the
degree of a node and itself (coverage maximisation). A session trains the head on its supports and the memory::

    L = Σ_v w(y_v) ce(head(e_v), y_v) + λ/2 ‖W‖²,   w(c) = 1/(C n_c)     n_c: nodes of class c that are trained on

Departures:

- e has a node's own features beside those around it, ``own=false`` has the latter alone as printed; features are
  projected on leading singular vectors. The released code samples through a dense matrix of all pairs of nodes; here
  it is the degree.
- Vectors go stale as edges arrive. Where the graph still has the nodes of the memory, their numbers are kept and every
  session makes their vectors again; under the track ``isolated`` the vectors themselves are kept, as printed.
- The head is trained from scratch at every session, on the memory alone, which the supports have joined. A memory of
  vectors is all that a head needs, so there is nothing to go on from. Nodes are taken in the order of their numbers,
  and classes in the order of their first nodes: the head is a function of the set of labels to the last digit, in
  whatever order they came, and ``restate`` is exact. Session 0 trains on all of its train nodes.
- The head is linear and L-BFGS minimises its convex loss. Adam, as printed, gives every column of e the same step,
  the faint ones too, which a linear head on singular vectors does not bear: it ended 10 points lower. In place of steps
  and rate there is λ: for session 0 its validation nodes choose it, for later ones validation sessions.
- ``hidden`` gives the head a hidden layer as printed.
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
from graphfcl.methods.learner import Labelled, Learner, Progress, Tensors
from graphfcl.methods.settings import CheckedSettings, Count, Number, Positive, Weight
from graphfcl.methods.shared.memories import SampledMemory
from graphfcl.methods.shared.supervised_training import class_balanced, cross_entropies
from graphfcl.methods.shared.training_state import LBFGS, check_finite
from graphfcl.metrics import balanced_accuracy, confusion_matrix
from graphfcl.nn import Linear, tensor_of
from graphfcl.stream.sessions import BaseSession, Session


@dataclass(frozen=True)
class TemSettings(CheckedSettings):
    """The names of formulas are those of the module docstring."""

    rank: Count = 1024
    """Columns of the basis B at most."""
    own: bool = True
    """Have a node's own features in its vector, beside those around it."""
    hop_weight: Weight = 2.0
    """Weight of the features around (a)."""
    budget: Count = 100
    """Nodes kept of each class."""
    hidden: Number = 0
    """Width of the head's hidden layer; 0 is a linear head."""
    penalties: tuple[Positive, ...] = (1e-3, 3e-4, 3e-3, 1e-2)
    """Candidates of the penalty (λ); the first wins a draw."""
    first_penalty: Positive | None = None
    """Penalty of session 0, instead of choosing it by validation nodes."""
    session_penalty: Positive | None = None
    """Penalty of later sessions, instead of choosing it in validation sessions."""
    iterations: Count = 60
    """Of L-BFGS, at most."""


class TemMemory(SampledMemory):
    """The sample of labelled nodes, and the head that was trained last.

    class_count: columns of the head. head: its weights, as :func:`answers` reads them.
    """

    saved = (*SampledMemory.rows, "class_count", "head")

    def __init__(self, budget: int, seed: int) -> None:
        super().__init__(budget, seed)
        self.class_count = 0
        self.head: Tensors = {}

    @property
    def counts(self) -> torch.Tensor:
        """(C,) nodes of each class in the sample."""
        return torch.bincount(torch.from_numpy(self.labels), minlength=self.class_count)

    @property
    def nbytes(self) -> int:
        return sum(self.stored().values())

    def plus(self, labelled: Labelled, weights: np.ndarray, vectors: torch.Tensor | None, count: int) -> Self:
        """The sample with more labelled nodes, of ``count`` classes at least; see :meth:`add`."""
        sample = copy(self)
        sample.class_count = max(count, self.class_count, int(labelled[1].max(initial=-1)) + 1)
        sample.add(labelled, weights, vectors)
        return sample

    def stored(self) -> dict[str, int]:
        return {**super().stored(), "weights": sum(tensor.nbytes for tensor in self.head.values())}


class Tem(ClosedFormLearner):
    """PDGNN-TEM; formulas and departures in the module docstring.

    memory: the sample of labelled nodes and the head. choice: the λ of session 0 and that of later ones.
    """

    title = "a head on propagated features, trained again on a memory of sampled vectors"
    reference = (
        "Zhang, Song, Chen, Tao: Topology-aware Embedding Memory for Continual Learning on Expanding Networks. KDD 2024"
    )
    settings_type = TemSettings
    works_on_disk = False  # session 0 trains on the vectors of all of its train nodes at once
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

    def _hold(self, statistics: TemMemory) -> None:
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
        """The head of all of these nodes, which are taken in the order of their numbers."""
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
        """(m, C) logits of the linear head, or of the one with a hidden layer."""
        if "inner.weight" in head:
            vectors = torch.relu(vectors @ head["inner.weight"] + head["inner.bias"])
        return vectors @ head["outer.weight"] + head["outer.bias"]

    def _head_now(self, inputs: NodeTables) -> Tensors:  # noqa: ARG002
        return self.memory.head

    @torch.enable_grad()
    def _trained(self, embeddings: torch.Tensor, labels: np.ndarray, class_count: int, penalty: float) -> Tensors:
        """The head from scratch, every class counting the same; the embeddings in the order of their nodes.

        A linear head starts at zeros, because its loss is convex, and has no biases: vectors are centred. Classes
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

    # What is known of labelled nodes

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
        else:  # all that is known is session 0, which trains on everything
            self.memory.head = self._trained_on(train, inputs, self.choice["first_penalty"])
        return True

    def scores_without(
        self, visible: VisibleNodes, left_out: Labelled, train: Labelled, supports: Labelled
    ) -> np.ndarray | None:
        return Learner.scores_without(self, visible, left_out, train, supports)


def cover(visible: VisibleNodes, nodes: np.ndarray) -> np.ndarray:
    """(s,) nodes that each covers in one hop: its degree, and itself."""
    return visible.degrees[visible.rows(nodes)].astype(np.float64) + 1


def _in_order_of_first(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The columns that occur, each where it is met first, and (n,) the place of each label among them."""
    columns, first, places = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return columns[order], np.argsort(order)[places]
