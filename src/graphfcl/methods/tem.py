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

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import nn

from graphfcl.errors import InputError
from graphfcl.graph import VisibleGraph
from graphfcl.measures import balanced_accuracy, confusion_matrix
from graphfcl.methods.learner import NO_STORE, SILENT, EncoderStore, Labelled, Learner, LearnerState, Progress
from graphfcl.methods.settings import require_range
from graphfcl.methods.shared.choosing import choose_over_draws
from graphfcl.methods.shared.embedding_cache import EmbeddingCache
from graphfcl.methods.shared.optimisers import LBFGS
from graphfcl.methods.shared.sampled_memory import SampledMemory, cover
from graphfcl.methods.shared.supervised_training import class_balanced
from graphfcl.methods.shared.trained_head import cross_entropies
from graphfcl.methods.shared.training_state import check_finite, copy_weights, with_prefix, without_prefix
from graphfcl.methods.shared.untrained_blocks import HOPS, UntrainedBlocks, prepared_inputs
from graphfcl.methods.shared.validation_sessions import ValidationSessions, all_held_out
from graphfcl.nn import GraphInputs, Linear, tensor_of
from graphfcl.stream import BaseSession, Session


@dataclass(frozen=True)
class TemSettings:
    """The names of formulas are those of the module docstring."""

    rank: int = 512
    """Columns of the basis B at most."""
    own: bool = True
    """Have a node's own features in its vector, beside those around it."""
    hop_weight: float = 2.0
    """Weight of the features around (a)."""
    budget: int = 100
    """Nodes kept of each class."""
    hidden: int = 0
    """Width of the head's hidden layer; 0 is a linear head."""
    penalties: tuple[float, ...] = (1e-3, 3e-4, 3e-3, 1e-2)
    """Candidates of the penalty (λ); the first wins a draw."""
    first_penalty: float | None = None
    """Penalty of session 0, instead of choosing it by validation nodes."""
    session_penalty: float | None = None
    """Penalty of later sessions, instead of choosing it in validation sessions."""
    iterations: int = 60
    """Of L-BFGS, at most."""

    def __post_init__(self) -> None:
        for name in ("rank", "budget", "iterations"):
            require_range(name, getattr(self, name), least=1)
        for name in ("hidden", "hop_weight"):
            require_range(name, getattr(self, name), least=0)
        if not self.penalties:
            raise InputError("penalties is empty: give at least one number.")
        for value in (*self.penalties, self.first_penalty, self.session_penalty):
            require_range("penalty", value, above=0)


class TemHead(nn.Module):
    """(n, width) vectors → (n, classes) logits, −∞ for a class that has no labelled node.

    A linear head starts at zeros, because its loss is convex, and has no biases: vectors are centred.
    """

    absent: torch.Tensor

    def __init__(self, width: int, hidden: int, classes: int, generator: torch.Generator) -> None:
        super().__init__()
        self.register_buffer("absent", torch.zeros(classes, dtype=torch.bool))
        self.inner = Linear(width, hidden, generator) if hidden else None
        self.outer = Linear(hidden or width, classes, generator)
        if not hidden:
            nn.init.zeros_(self.outer.weight)
            self.outer.bias.requires_grad_(False)

    def placed(self, columns: torch.Tensor, wider: "TemHead") -> "TemHead":
        """``wider``, with this head's classes in some of its columns and no class in the others."""
        weights = {name: value for name, value in self.state_dict().items() if name.startswith("inner.")}
        wider.load_state_dict(weights, strict=False)
        wider.absent.fill_(True).index_fill_(0, columns, False)
        with torch.no_grad():
            for mine, other in zip(self.outer.parameters(), wider.outer.parameters(), strict=True):
                other.zero_().index_copy_(-1, columns, mine)
        return wider

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        logits = self.outer(points if self.inner is None else torch.relu(self.inner(points)))
        return logits.masked_fill(self.absent, -torch.inf)


class Tem(Learner):
    """PDGNN-TEM; formulas and departures in the module docstring.

    blocks: basis and centres of e. memory: the sample of labelled nodes. head: as it was trained last.
    first_penalty, session_penalty: of session 0 and of later ones.
    """

    name: ClassVar[str] = "tem"
    title: ClassVar[str] = "a head on propagated features, trained again on a memory of sampled vectors"
    reference: ClassVar[str] = (
        "Zhang, Song, Chen, Tao: Topology-aware Embedding Memory for Continual Learning on Expanding Networks. KDD 2024"
    )
    settings_type: ClassVar[type[Any]] = TemSettings
    lasting_tensors: ClassVar[tuple[str, ...]] = ("blocks.",)
    randomness: ClassVar[tuple[str, ...]] = ("nodes", "columns")  # the sampled memory; start of the singular vectors
    settings: TemSettings

    def __init__(self, settings: Any = None, *, seed: int = 0, device: str | torch.device = "cpu") -> None:
        super().__init__(settings, seed=seed, device=device)
        self.blocks = UntrainedBlocks()
        self.memory = SampledMemory(self.settings.budget, seed)
        self.head: TemHead | None = None
        self.track = "transductive"
        self.first_penalty = self.settings.first_penalty or self.settings.penalties[0]
        self.session_penalty = self.settings.session_penalty or self.settings.penalties[0]
        self.cache = EmbeddingCache(self._make_inputs)

    # Session 0

    def fit(self, base: BaseSession, progress: Progress = SILENT, encoders: EncoderStore = NO_STORE) -> None:  # noqa: ARG002
        if self.classes_:
            if self.classes_ != base.classes:
                raise InputError("this learner was fitted on other classes: make a new one to fit it.")
            return
        inputs = self.cache.inputs(base.visible_graph)
        self.blocks.fix(inputs, self.settings.rank, self.seed)
        self.cache.keep_embeddings(base.visible_graph, self.blocks.of(inputs))
        self.track = base.track
        self.session_penalty = self._choose_penalty(base, inputs, progress)
        self._train_on_everything(base, inputs, progress)
        self.classes_ = base.classes
        self._remember((base.train, base.train_labels), inputs)
        progress.checkpoint(self)

    def _choose_penalty(self, base: BaseSession, inputs: GraphInputs, progress: Progress) -> float:
        """The λ of later sessions: that with the best mean score over draws of the supports of held-out classes.

        The head is trained from scratch, so the sessions before the last one need not be walked through.
        """
        validation, candidates = ValidationSessions.draw(all_held_out(base), self.seed), self.settings.penalties
        if self.settings.session_penalty is not None:
            return self.settings.session_penalty
        known = self.memory.first(validation.train, cover(base.visible_graph, validation.train[0]))
        asked = self._points(inputs, validation.asked[0])

        def scores_of(draw: ValidationSessions) -> list[float]:
            *_, last = draw.sessions()
            nodes = np.concatenate([validation.train[0][known], last.supports])
            labels = np.concatenate([validation.train[1][known], last.support_classes])
            nodes, labels = _by_number(nodes, labels)
            points = self._points(inputs, nodes)
            heads = (self._trained(points, labels, draw.class_count, penalty) for penalty in candidates)
            return [draw.score_of(_answers(head, asked)) for head in heads]

        return choose_over_draws(candidates, validation, scores_of, progress)

    def _train_on_everything(self, base: BaseSession, inputs: GraphInputs, progress: Progress) -> None:
        """The head of session 0, with the λ that does best on its validation nodes."""
        fixed, count, best = self.settings.first_penalty, len(base.classes), -1.0
        candidates = self.settings.penalties if fixed is None else (fixed,)
        nodes, labels = _by_number(base.train, base.train_labels)
        points, asked = self._points(inputs, nodes), self._points(inputs, base.validation)
        for place, penalty in enumerate(candidates):
            head = self._trained(points, labels, count, penalty)
            score = balanced_accuracy(confusion_matrix(base.validation_labels, _answers(head, asked), count))
            if score > best:
                best, self.first_penalty, self.head = score, penalty, head
            progress.step("session 0", place + 1, len(candidates), score=best)

    # From a graph to vectors

    def _make_inputs(self, visible: VisibleGraph, *, sparing: bool = False) -> GraphInputs:
        return prepared_inputs(visible, self.device, self.seed, sparing=sparing)

    def _embeddings(self, inputs: GraphInputs) -> torch.Tensor:
        known = self.cache.embeddings(inputs)
        return self.blocks.of(inputs) if known is None else known

    def _raw_points(self, inputs: GraphInputs, nodes: np.ndarray) -> torch.Tensor:
        """(nodes, 2k) blocks in 16 bits."""
        rows, known = inputs.visible.rows(nodes), self.cache.embeddings(inputs)
        if known is None:
            return self.blocks.of(GraphInputs(inputs.visible, self.device, sparing=True), rows)
        return known[torch.tensor(rows, device=self.device)]

    def _points(self, inputs: GraphInputs, nodes: np.ndarray) -> torch.Tensor:
        """(nodes, 2k) e in 32 bits."""
        return self._weighted(self._raw_points(inputs, nodes))

    def _weighted(self, raw: torch.Tensor) -> torch.Tensor:
        scales = self.blocks.weighted(self.settings.hop_weight).float()
        if not self.settings.own:
            scales[: scales.numel() // 2] = 0
        return raw.float() * scales

    @property
    def reach(self) -> int:
        return HOPS

    def embeddings(self, visible: VisibleGraph) -> np.ndarray:
        found = self._embeddings(self.cache.inputs(visible))
        self.cache.keep_embeddings(visible, found)
        return found.cpu().numpy()

    def embeddings_of_rows(self, visible: VisibleGraph, rows: np.ndarray) -> np.ndarray:
        return self.blocks.of(self._make_inputs(visible, sparing=True), rows).cpu().numpy()

    def use_embeddings(self, visible: VisibleGraph, embeddings: np.ndarray) -> None:
        self.cache.classes_changed()
        self.cache.keep_embeddings(visible, torch.tensor(embeddings, device=self.device))

    def vectors_to_draw(self, visible: VisibleGraph, nodes: np.ndarray) -> np.ndarray | None:
        return self.embeddings(visible)[visible.rows(nodes)].astype(np.float32)

    # Sessions and scores

    def learn(self, session: Session) -> None:
        self.classes_ = self.classes_ + session.new_classes
        inputs = self.cache.inputs(session.visible_graph)
        self._remember((session.supports, session.support_labels), inputs)
        self._train_on_memory(inputs)

    def _remember(self, labelled: Labelled, inputs: GraphInputs) -> None:
        vectors = self._raw_points(inputs, labelled[0]) if self.track == "isolated" else None
        self.memory.add(labelled, cover(inputs.visible, labelled[0]), vectors)

    def _train_on_memory(self, inputs: GraphInputs) -> None:
        points = self._weighted(self.memory.points(lambda nodes: self._raw_points(inputs, nodes)))
        self.head = self._trained(points, self.memory.labels, len(self.classes_), self.session_penalty)
        self.cache.classes_changed()

    def _trained(self, points: torch.Tensor, labels: np.ndarray, class_count: int, penalty: float) -> TemHead:
        """The head from scratch, every class counting the same; the points in the order of their nodes."""
        present, places = _in_order_of_first(labels)
        head, columns = self._new_head(present.size), tensor_of(places, self.device)
        loss_of = class_balanced(cross_entropies)
        weights = [each.weight for each in (head.inner, head.outer) if each is not None]
        optimiser = LBFGS(
            [each for each in head.parameters() if each.requires_grad],
            max_iter=self.settings.iterations,
            tolerance_grad=1e-6,
            tolerance_change=1e-8,
            line_search_fn="strong_wolfe",
        )

        def closure() -> torch.Tensor:
            optimiser.zero_grad()
            loss = loss_of(head(points), columns) + penalty / 2 * sum((each**2).sum() for each in weights)
            loss.backward()
            return loss

        check_finite(optimiser.step(closure), "training of the head", self.settings.iterations)
        return head.placed(tensor_of(present, self.device), self._new_head(class_count))

    def _new_head(self, class_count: int) -> TemHead:
        start = torch.Generator().manual_seed(self.seed)
        return TemHead(self.blocks.width, self.settings.hidden, class_count, start).to(self.device)

    def scores(self, visible: VisibleGraph, nodes: np.ndarray) -> np.ndarray:
        # All nodes are scored at once, whatever is asked: products of other shapes differ in their last digits.
        return self.cache.scores(visible, self._score_all)[visible.rows(nodes)]

    def _score_all(self, inputs: GraphInputs) -> torch.Tensor:
        assert self.head is not None
        return _scored(self.head, self._weighted(self._embeddings(inputs)))

    def chosen(self) -> dict[str, Any]:
        return {"first_penalty": self.first_penalty, "session_penalty": self.session_penalty}

    # What is known of labelled nodes

    @property
    def forgets_exactly(self) -> bool:
        return self.track != "isolated"

    def restate(self, visible: VisibleGraph, train: Labelled, supports: Labelled) -> bool:
        if not self.forgets_exactly:
            return False
        inputs = self.cache.inputs(visible)
        self.cache.keep_embeddings(visible, self._embeddings(inputs))
        nodes, labels = (np.concatenate(parts) for parts in zip(train, supports, strict=True))
        self.memory.replace((nodes, labels), cover(visible, nodes))
        if supports[0].size:
            self._train_on_memory(inputs)
        else:  # all that is known is session 0, which trains on everything
            nodes, labels = _by_number(nodes, labels)
            self.head = self._trained(self._points(inputs, nodes), labels, len(self.classes_), self.first_penalty)
            self.cache.classes_changed()
        return True

    def drop_nodes(self, nodes: np.ndarray) -> None:
        self.memory.drop(nodes)

    def rehearsal(self) -> Learner | None:
        """One with the same penalties."""
        fixed = replace(self.settings, first_penalty=self.first_penalty, session_penalty=self.session_penalty)
        return type(self)(fixed, seed=self.seed, device=self.device)

    # State

    def copy(self, visible: VisibleGraph) -> Self:  # noqa: ARG002
        other = type(self)(self.settings, seed=self.seed, device=self.device)
        other.classes_, other.track = self.classes_, self.track
        other.first_penalty, other.session_penalty = self.first_penalty, self.session_penalty
        other.blocks.become(self.blocks, self.device)
        other.memory.become(self.memory, self.device)
        other.head = self.head  # a session makes another one
        other.cache.share(self.cache)
        return other

    def stored(self) -> dict[str, int]:
        found = {"nodes": 0, "features": 0, "embeddings": 0, **self.memory.stored(), **self.blocks.stored()}
        head = {} if self.head is None else self.head.state_dict()
        return {**found, "weights": found["weights"] + sum(tensor.nbytes for tensor in head.values())}

    def state(self) -> LearnerState:
        values = {
            "method": self.name,
            "settings": self.settings_as_json(),
            "seed": self.seed,
            "classes": list(self.classes_),
            "track": self.track,
            "chosen": self.chosen(),
        }
        head = {} if self.head is None else with_prefix("head", copy_weights(self.head))
        return LearnerState({**self.blocks.tensors(), **self.memory.tensors(), **head}, values)

    def load_state(self, state: LearnerState) -> None:
        values = state.values
        self.refuse_another(values)
        self.classes_ = tuple(values["classes"])
        self.track = values["track"]
        chosen = values["chosen"]
        self.first_penalty, self.session_penalty = chosen["first_penalty"], chosen["session_penalty"]
        self.blocks.load(values, state.tensors, self.device)
        self.memory.load(values, state.tensors, self.device)
        self.cache.weights_changed()
        self.head = None
        if self.classes_:
            self.head = self._new_head(len(self.classes_))
            self.head.load_state_dict(without_prefix("head", state.tensors))


def _by_number(nodes: np.ndarray, labels: np.ndarray) -> Labelled:
    """The same labelled nodes in the order of their numbers."""
    order = np.argsort(nodes)
    return nodes[order], labels[order]


def _in_order_of_first(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The columns that occur, each where it is met first, and (n,) the place of each label among them."""
    columns, first, places = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return columns[order], np.argsort(order)[places]


@torch.no_grad()
def _scored(head: TemHead, points: torch.Tensor) -> torch.Tensor:
    return head(points)


def _answers(head: TemHead, points: torch.Tensor) -> np.ndarray:
    """(n,) the likeliest class of each."""
    return _scored(head, points).argmax(dim=1).cpu().numpy()
