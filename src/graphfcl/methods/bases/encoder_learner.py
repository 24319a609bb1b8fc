"""The base class of learners with an encoder: pre-training, resumable stages, and a state composed of parts."""

from abc import abstractmethod
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import nn

from graphfcl.errors import DivergenceError, InputError
from graphfcl.graph.interfaces import VisibleNodes
from graphfcl.methods.learner import SILENT, Learner, Progress
from graphfcl.methods.settings import CheckedSettings, Count, Share, require_choice
from graphfcl.methods.shared.embedding_cache import EmbeddingCache
from graphfcl.methods.shared.parts import ClassMemory, OwnAttributes, Part
from graphfcl.methods.shared.supervised_training import OwnEncoder, SupervisedSettings, SupervisedTraining, pretrain
from graphfcl.methods.shared.training_state import copy_weights, with_prefix, without_prefix
from graphfcl.methods.state import (
    NO_STORE,
    EncoderStore,
    Labelled,
    LearnerState,
    Tensors,
)
from graphfcl.metrics import balanced_accuracy, confusion_matrix
from graphfcl.nn import ENCODERS, Encoder, GraphInputs, Linear, tensor_of
from graphfcl.stream.sessions import BaseSession, Session


@dataclass(frozen=True)
class EncoderSettings(CheckedSettings):
    """Settings of the encoder and its pre-training.

    Each method has the widths that were best for it on development graphs, selected from the same candidates
    (``results/tuning.csv``). The defaults here are the widths of most methods.
    """

    encoder: str = "gcn"
    """Type of graph encoder: gcn or gat."""
    hidden: Count = 256
    """Width of the encoder's first layer."""
    size: Count = 128
    """Width of an embedding."""
    last_relu: bool = True
    """Apply a ReLU to the last encoder layer; the code of HAG-Meta's authors has none."""
    dropout: Share = 0.5
    """Fraction of hidden values that are dropped in training."""
    pretraining: SupervisedSettings = field(default_factory=SupervisedSettings)
    """Pre-training of the encoder on session 0."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice("encoder", self.encoder, tuple(ENCODERS))
        if self.encoder == "gat" and self.hidden % 4:
            raise InputError(f"hidden is {self.hidden}; with the encoder gat it must be a multiple of its 4 heads.")


class Stage(StrEnum):
    """Stages of fitting session 0, as recorded in a state."""

    NEW = "new"
    PRE_TRAINING = "pre-training"
    PRE_TRAINED = "pre-trained"
    ENCODER = "encoder"
    SESSION_ZERO = "session 0"
    COSINE_HEAD = "cosine head"
    PREPARED = "prepared"
    META_TRAINING = "meta-training"
    CHOOSING = "choosing"
    REFIT = "refit"
    FINISHING = "finishing"
    READY = "ready"


@dataclass(frozen=True)
class StreamSizes:
    """Sizes of a stream: feature columns, base classes, classes of session 0 (``many``), N (way) and K (shot)."""

    features: int = 0
    base: int = 0
    many: int = 0
    way: int = 1
    shot: int = 1


class EncoderLearner(Learner):
    """A learner with a graph encoder g_θ that is pre-trained on the base classes.

    A method defines the network around the encoder (:meth:`_build`), the training of session 0 after pre-training
    (:meth:`_train`), an incremental session (:meth:`_learn`), and the scores of all nodes (:meth:`_score_all`). Its
    state consists of the network and of its :meth:`parts`. The same settings, seed and machine give the same numbers.

    Methods receive a visible graph as ``inputs``: :class:`~graphfcl.nn.GraphInputs`, or tables of all nodes.

    Attributes:
        memory: Memory of labelled nodes.
        cache: Results computed for the latest graph.
        network: Module with ``encoder`` and ``embed(inputs, rows)``.
        pretraining: The pre-training loop, which is a part of the learner while it runs.
    """

    randomness = ("nodes", "columns")
    # Random over nodes: dropout, batches, episodes, supports of validation sessions. Random over columns: initial
    # weights of the encoder, and the start of the iteration for singular vectors.

    settings_type = EncoderSettings
    lasting_tensors: ClassVar[tuple[str, ...]] = ("network.",)
    network: Any
    pretraining: SupervisedTraining

    def __init__(self, settings: Any = None, *, seed: int = 0, device: str | torch.device = "cpu") -> None:
        super().__init__(settings, seed=seed, device=device)
        self.stage = Stage.NEW
        self.random = np.random.default_rng([seed, 1])
        self.generator = torch.Generator(self.device).manual_seed(seed)
        self.sizes = StreamSizes()
        self.track = "transductive"
        self.memory: Any = ClassMemory()
        self.cache = EmbeddingCache(self._make_inputs)
        self.pretrained: Tensors = {}  # all weights right after pre-training; empty once the learner is ready
        self._own = OwnAttributes(self, "track", "random", "pretraining_seconds_", "pretraining_reused_")

    # What a method defines

    @abstractmethod
    def _build(self, encoder: Encoder, start: torch.Generator) -> nn.Module:
        """Build the network around the encoder, with initial weights drawn from ``start``."""

    @abstractmethod
    def _train(self, base: BaseSession, inputs: Any, progress: Progress) -> None:
        """Run all stages after pre-training."""

    @abstractmethod
    def _learn(self, session: Session, inputs: Any) -> None:
        """Learn an incremental session, whose classes are already in ``classes_``."""

    @abstractmethod
    def _score_all(self, inputs: Any) -> torch.Tensor:
        """Compute the (n, classes) scores of all visible nodes."""

    def _keeps_weights(self) -> bool:
        """Whether sessions do not change the embeddings of nodes."""
        return False

    def parts(self) -> tuple[Part, ...]:
        """Return the parts of the state in this stage, besides the network. A method adds its own."""
        running = (self.pretraining,) if self.stage == Stage.PRE_TRAINING else ()
        return (self.memory, *running)

    # Session 0

    def fit(self, base: BaseSession, progress: Progress = SILENT, encoders: EncoderStore = NO_STORE) -> None:
        inputs = self.cache.inputs(base.visible_graph)
        self.cache.weights_changed()
        if self.stage == Stage.NEW:
            self._start(base, inputs)
        elif self.classes_ != base.classes or self.track != base.track:
            raise InputError("this learner was fitted on other classes or another track: make a new one to fit it.")
        if self.stage == Stage.PRE_TRAINING:
            self._pretrain(base, inputs, progress, encoders)
            self.pretrained = copy_weights(self.network)
            self._enter(Stage.PRE_TRAINED, progress)
        if self.stage != Stage.READY:
            self._train(base, inputs, progress)
            self._enter(Stage.READY, progress)
        self._check_above_chance(base)

    def _start(self, base: BaseSession, inputs: Any) -> None:
        self.classes_, self.track = base.classes, base.track
        self.sizes = StreamSizes(inputs.feature_count, len(base.base_classes), len(base.classes), base.way, base.shot)
        self.memory.begin(base)
        self._make_network()
        self.stage = Stage.PRE_TRAINING

    def _make_network(self) -> None:
        """Create encoder and head first, so that all methods pre-train from the same initial weights."""
        chosen = self.settings
        start = torch.Generator().manual_seed(self.seed)
        encoder = self._make_encoder(start, chosen.hidden)
        head = Linear(chosen.size, self.sizes.base, start).to(self.device)
        self.pretraining = SupervisedTraining(
            encoder, head, chosen.pretraining, stage="pre-training", name="pretraining"
        )
        self.network = self._build(encoder, start).to(self.device)

    def _make_encoder(self, start: torch.Generator, hidden: int) -> Encoder:
        chosen = self.settings
        return ENCODERS[chosen.encoder](
            self.sizes.features, hidden, chosen.size, start, dropout=chosen.dropout, last_relu=chosen.last_relu
        ).to(self.device)

    def _pretrain(self, base: BaseSession, inputs: Any, progress: Progress, encoders: EncoderStore) -> None:
        pretrain(self, base, self._whole(inputs), progress, encoders)

    def _run_pretraining(self, base: BaseSession, inputs: GraphInputs, progress: Progress) -> float:
        """Pre-train the encoder, and return the seconds it took."""
        return self.pretraining.run_base(base, inputs, self, progress)

    def _encoder_options(self, base: BaseSession) -> dict[str, Any]:  # noqa: ARG002
        """Return further values that a pre-trained encoder of this method depends on."""
        return {}

    def _enter(self, stage: Stage, progress: Progress) -> None:
        """Start a stage, and save a checkpoint from which it can be resumed."""
        self.stage = stage
        progress.checkpoint(self)

    def _check_above_chance(self, base: BaseSession) -> None:
        """Raise :class:`DivergenceError` if validation accuracy is at chance level, as with a collapsed encoder."""
        count = len(base.classes)
        self._forget_training()
        predicted = self.scores(base.visible_graph, base.validation)[:, :count].argmax(axis=1)
        accuracy = balanced_accuracy(confusion_matrix(base.validation_labels, predicted, count))
        sizes = np.bincount(base.validation_labels, minlength=count).clip(min=1)
        error = np.sqrt((1 / count) * (1 - 1 / count) * (1 / sizes).sum()) / count  # standard error at chance level
        # With very few validation nodes, even a perfect accuracy is within chance.
        if count > 1 and not accuracy > min(1 / count + 2 * error, 0.99):
            raise DivergenceError(
                f"after training, the balanced accuracy on validation nodes is {accuracy:.3f} with {count} classes, no "
                "better than chance: the encoder collapsed, or neither features nor edges separate the classes. Try "
                "another seed, a smaller learning rate, or last_relu=False."
            )

    def _copy_fitted_to(self, base: BaseSession, **changes: Any) -> Self:
        """Fit a copy with changed settings to ``base``, with this learner's pre-trained encoder."""
        copy = type(self)(replace(self.settings, **changes), seed=self.seed, device=self.device)
        copy.cache.share(self.cache)  # the graph is the same
        copy.fit(base, encoders=OwnEncoder(without_prefix("encoder", self.pretrained), self.generator))
        return copy

    def _forget_training(self) -> None:
        """Discard cached results that were computed with earlier weights during training."""
        self.cache.weights_changed()

    # Incremental sessions, scores and embeddings

    def learn(self, session: Session) -> None:
        self.cache.classes_changed()
        self.classes_ = self.classes_ + session.new_classes
        inputs = self.cache.inputs(session.visible_graph)
        if not self._keeps_weights():
            self.cache.weights_changed()
        self._learn(session, inputs)

    def scores(self, visible: VisibleNodes, nodes: np.ndarray) -> np.ndarray:
        # Always score all nodes at once: matrix products of other shapes differ in their last digits.
        return self.all_scores(visible)[visible.rows(nodes)]

    def all_scores(self, visible: VisibleNodes) -> Any:
        with torch.no_grad():
            scores = self.cache.scores(visible, self._score_all)
        if self.stage != Stage.READY:
            self.cache.classes_changed()
        return scores

    def _embed(self, inputs: Any, rows: np.ndarray | None = None) -> torch.Tensor:
        """Compute (r, width) embeddings of some rows or of all, the encoder's output first."""
        return self.network.embed(inputs, rows)

    def _embeddings(self, inputs: Any) -> torch.Tensor:
        """Return the (n, width) embeddings of all nodes, from the cache or by a forward pass."""
        embeddings = self.cache.embeddings(inputs)
        return self._embed(inputs) if embeddings is None else embeddings

    def embeddings(self, visible: VisibleNodes) -> np.ndarray:
        with torch.no_grad():
            embeddings = self._embeddings(self.cache.inputs(visible))
        if self.stage == Stage.READY:  # during training, the next step changes them
            self.cache.keep_embeddings(visible, embeddings)
        return embeddings.cpu().numpy()

    def embeddings_of_rows(self, visible: VisibleNodes, rows: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return self._embed(self._make_inputs(visible, sparing=True), rows).cpu().numpy()

    def use_embeddings(self, visible: VisibleNodes, embeddings: np.ndarray) -> None:
        self.cache.classes_changed()
        self.cache.keep_embeddings(visible, tensor_of(embeddings, self.device))

    def vectors_to_draw(self, visible: VisibleNodes, nodes: np.ndarray) -> np.ndarray | None:
        with torch.no_grad():
            embeddings = self._embeddings(self.cache.inputs(visible))[:, : self.settings.size]
        return embeddings.cpu().numpy()[visible.rows(nodes)]

    def _make_inputs(self, visible: VisibleNodes, *, sparing: bool = False) -> Any:
        return GraphInputs(visible.loaded(), self.device, sparing=sparing)

    def _whole(self, inputs: Any) -> GraphInputs:
        """Return the graph that an encoder is pre-trained on."""
        return inputs

    # Memory of labelled nodes

    def restate(self, visible: VisibleNodes, train: Labelled, supports: Labelled) -> bool:  # noqa: ARG002
        self.cache.classes_changed()
        return self.memory.restate(train, supports, self.sizes.many)

    @property
    def forgets_exactly(self) -> bool:
        return self._keeps_weights() and self.memory.forgets_exactly

    def drop_nodes(self, nodes: np.ndarray) -> None:
        self.cache.classes_changed()
        self.memory.drop(nodes)

    def chosen(self) -> dict[str, Any]:
        return {key: value for part in self.parts() for key, value in part.chosen().items()}

    def stored(self) -> dict[str, int]:
        sizes = {"nodes": 0, "features": 0, "embeddings": 0, "weights": 0}
        if self.stage != Stage.NEW:
            sizes["weights"] = sum(value.nbytes for value in self.network.state_dict().values())
        for part in self.parts():
            for kind, size in part.stored().items():
                sizes[kind] += size
        return sizes

    # State

    def state(self) -> LearnerState:
        values: dict[str, Any] = {
            "method": self.name,
            "settings": self.settings_as_json(),
            "seed": self.seed,
            "stage": self.stage.value,
            "classes": list(self.classes_),
            "sizes": asdict(self.sizes),
            "device": self.device.type,
            **self._own.values(),
        }
        tensors = {"generator": self.generator.get_state()}
        if self.stage != Stage.NEW:
            tensors |= with_prefix("network", copy_weights(self.network))
            for part in self.parts():
                values |= part.values()
                tensors |= part.tensors()
        if self.stage not in (Stage.NEW, Stage.PRE_TRAINING, Stage.READY):
            tensors |= with_prefix("pretrained", self.pretrained)
        return LearnerState(tensors, values)

    def load_state(self, state: LearnerState) -> None:
        values, tensors = state.values, state.tensors
        self.refuse_another(values)
        self.stage, self.classes_ = Stage(values["stage"]), tuple(values["classes"])
        self.sizes = StreamSizes(**values["sizes"])
        self._own.load(values, tensors, self.device)
        if values["device"] == self.device.type:
            self.generator.set_state(tensors["generator"])
        else:  # the state of a generator is only valid on the same type of device
            self.generator.manual_seed(self.seed + 1)
        self.cache.weights_changed()
        if self.stage == Stage.NEW:
            self._forget()
            return
        weights = without_prefix("network", tensors)
        self._check_sizes(weights)
        self._make_network()
        self.network.load_state_dict(weights)
        for part in self.parts():
            part.load(values, tensors, self.device)
        self.pretrained = without_prefix("pretrained", tensors)

    def _check_sizes(self, weights: Tensors) -> None:
        """Raise an error if sizes do not match the weights, before a network of excessive size is allocated."""
        total = sum(weight.numel() for weight in weights.values())
        if max(self.sizes.features, self.settings.size) * self.settings.hidden > 2 * total + 1_000_000:
            raise ValueError("its sizes do not fit its weights")

    def copy(self, visible: VisibleNodes) -> Self:
        if self.stage != Stage.READY:
            return super().copy(visible)
        other = type(self)(self.settings, seed=self.seed, device=self.device)
        other._copy_from(self)
        return other

    def _copy_from(self, other: Self) -> None:
        """Copy the state of a fitted learner. Weights that no session changes are shared, and so are embeddings."""
        self.stage, self.classes_, self.sizes = other.stage, other.classes_, other.sizes
        self._own.copy_from(other._own, self.device)
        self.generator.set_state(other.generator.get_state())
        self._make_network()
        self.network.load_state_dict(other.network.state_dict(), assign=other._keeps_weights())
        for mine, theirs in zip(self.network.parameters(), other.network.parameters(), strict=True):
            mine.requires_grad_(theirs.requires_grad)
        for part, same in zip(self.parts(), other.parts(), strict=True):
            part.copy_from(same, self.device)
        self.cache.share(other.cache)

    def _forget(self) -> None:
        """Reset all parts to those of a new learner."""
        random, generator = self.random, self.generator
        type(self).__init__(self, self.settings, seed=self.seed, device=self.device)
        self.random, self.generator = random, generator
