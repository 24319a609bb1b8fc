"""What all learners of this package share: a pre-trained encoder, stages that can be interrupted, a state."""

import hashlib
from abc import abstractmethod
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from torch import nn

from graphfcl.errors import DivergenceError, InputError
from graphfcl.graph import VisibleGraph
from graphfcl.measures import balanced_accuracy, confusion_matrix
from graphfcl.methods.learner import NO_STORE, SILENT, EncoderStore, Learner, LearnerState, Progress, Tensors
from graphfcl.methods.settings import MethodSettings
from graphfcl.methods.supervised import SupervisedTraining, base_part
from graphfcl.methods.training import (
    copy_weights,
    generator_from,
    generator_state,
    with_prefix,
    without_prefix,
)
from graphfcl.nn import ENCODERS, GraphInputs, Linear
from graphfcl.stream import BaseSession, Session

Settings = TypeVar("Settings", bound=MethodSettings)


class GraphLearner(Learner):
    """A learner on a graph encoder g_θ that was pre-trained on the base classes.

    A method says what it adds to the encoder (:meth:`_build`), how session 0 goes on after pre-training
    (:meth:`_train`), what an incremental session changes (:meth:`_learn`) and how all nodes are scored
    (:meth:`_score_all`). Same settings, seed and machine: the same numbers.
    """

    name: ClassVar[str]
    settings_type: ClassVar[type[MethodSettings]]
    lasting_tensors: ClassVar[tuple[str, ...]] = ("network.",)
    settings: Any
    network: Any  # has the encoder as ``network.encoder``

    def __init__(
        self, settings: MethodSettings | None = None, *, seed: int = 0, device: str | torch.device = "cpu"
    ) -> None:
        self.settings = settings or self.settings_type()
        self.seed = seed
        self.device = torch.device(device)
        self.stage = "new"
        self.random = np.random.default_rng([seed, 1])
        self.generator = torch.Generator(self.device).manual_seed(seed)
        self.sizes = {"features": 0, "base": 0, "many": 0, "way": 1, "shot": 1}
        self.track = "transductive"
        self.pretrained: Tensors = {}  # all weights right after pre-training, until the learner is ready
        self.pretraining_seconds_ = 0.0
        self.pretraining_reused_ = False  # whether another method had done it before
        self._last_inputs: tuple[VisibleGraph, GraphInputs] | None = None
        self._answers: tuple[VisibleGraph, np.ndarray] | None = None  # of the visible graph last asked about

    # What a method says

    @abstractmethod
    def _build(self, encoder: nn.Module, start: torch.Generator) -> nn.Module:
        """The network around the encoder, with weights drawn from ``start``, and what trains it."""

    def _begin(self, base: BaseSession) -> None:
        """Note what is kept of session 0, before any training."""

    @abstractmethod
    def _train(self, base: BaseSession, inputs: GraphInputs, progress: Progress) -> None:
        """All stages after pre-training; the last one is ``ready``."""

    @abstractmethod
    def _learn(self, session: Session, inputs: GraphInputs) -> None:
        """An incremental session; its classes are in ``classes_`` already."""

    @abstractmethod
    def _score_all(self, inputs: GraphInputs) -> torch.Tensor:
        """(n, classes) scores of every node of a visible graph."""

    def _own_tensors(self) -> Tensors:
        return {}

    def _own_values(self) -> dict[str, Any]:
        return {}

    def _load_own(self, values: dict[str, Any], tensors: Tensors) -> None:
        """The reverse of both; the network is built and has its weights."""

    # Session 0

    def fit(self, base: BaseSession, progress: Progress = SILENT, encoders: EncoderStore = NO_STORE) -> None:
        inputs = self._inputs(base.visible_graph)
        inputs.table = None
        if self.stage == "new":
            self._start(base, inputs)
        elif self.classes_ != base.classes or self.track != base.track:
            raise InputError(
                "this learner was fitted on other classes or another track: make a new one to fit it anew."
            )
        if self.stage == "pre-training":
            self._pretrain(base, inputs, progress, encoders)
            self.pretrained = copy_weights(self.network)
            self._enter("pre-trained", progress)
        if self.stage != "ready":
            self._train(base, inputs, progress)
            self._enter("ready", progress)
        self._refuse_chance(base)

    def _start(self, base: BaseSession, inputs: GraphInputs) -> None:
        self.classes_, self.track = base.classes, base.track
        self.sizes = {
            "features": inputs.feature_count,
            "base": len(base.base_classes),
            "many": len(base.classes),
            "way": base.way,
            "shot": base.shot,
        }
        self._begin(base)
        self._make_network()
        self.stage = "pre-training"

    def _make_network(self) -> None:
        """Encoder and head first, so that every method pre-trains from the same weights."""
        chosen = self.settings
        start = torch.Generator().manual_seed(self.seed)
        encoder = self._make_encoder(start, chosen.hidden)
        head = Linear(chosen.size, self.sizes["base"], start).to(self.device)
        self.pretraining = SupervisedTraining(encoder, head, chosen.pretraining)
        self.network = self._build(encoder, start).to(self.device)

    def _make_encoder(self, start: torch.Generator, hidden: int) -> nn.Module:
        chosen = self.settings
        return ENCODERS[chosen.encoder](
            self.sizes["features"],
            hidden,
            chosen.size,
            start,
            dropout=chosen.dropout,
            last_relu=chosen.last_relu,
        ).to(self.device)

    def _pretrain(self, base: BaseSession, inputs: GraphInputs, progress: Progress, encoders: EncoderStore) -> None:
        """The encoder of this graph, protocol and seed: computed here, or by another method before."""
        encoder = self.network.encoder
        self.pretraining_reused_ = True

        def compute() -> Tensors:
            self.pretraining_reused_ = False
            train, validation = base_part(base)
            self.pretraining.run(train, validation, inputs, self.generator, progress, self)
            return {
                **with_prefix("encoder", copy_weights(encoder)),
                "generator": self.generator.get_state(),
                "seconds": torch.tensor(self.pretraining.seconds, dtype=torch.float64),
            }

        found = encoders.get(self._encoder_key(base), compute)
        encoder.load_state_dict(without_prefix("encoder", found))
        self.generator.set_state(found["generator"])
        self.pretraining_seconds_ = float(found["seconds"])

    def _encoder_key(self, base: BaseSession) -> dict[str, Any]:
        """What a pre-trained encoder depends on besides the graph."""
        train, validation = base_part(base)
        nodes = hashlib.sha256(b"".join(part.tobytes() for part in (*train, *validation)))
        settings = self.settings.as_json()
        names = ("encoder", "hidden", "size", "last_relu", "dropout", "pretraining")
        return {
            **{name: settings[name] for name in names},
            "seed": self.seed,
            "device": self.device.type,
            "nodes": nodes.hexdigest(),
        }

    def _enter(self, stage: str, progress: Progress) -> None:
        """Start a stage; a checkpoint taken here begins it."""
        self.stage = stage
        progress.checkpoint(self)

    def _refuse_chance(self, base: BaseSession) -> None:
        """A collapsed encoder puts every node in one place; its table would look like a result."""
        count = len(base.classes)
        self._answers = None  # asked while it was trained, it had other weights
        found = self.scores(base.visible_graph, base.validation)[:, :count].argmax(axis=1)
        accuracy = balanced_accuracy(confusion_matrix(base.validation_labels, found, count))
        sizes = np.bincount(base.validation_labels, minlength=count).clip(min=1)
        error = np.sqrt((1 / count) * (1 - 1 / count) * (1 / sizes).sum()) / count  # of a balanced accuracy by chance
        # With a handful of validation nodes even a perfect answer could be chance.
        if count > 1 and not accuracy > min(1 / count + 2 * error, 0.99):
            raise DivergenceError(
                f"after training the balanced accuracy on validation nodes is {accuracy:.3f} with {count} classes, no "
                "better than chance: the encoder collapsed, or neither features nor edges tell the classes apart; try "
                "another seed, a smaller learning rate, or last_relu=False."
            )

    # Incremental sessions and scores

    def learn(self, session: Session) -> None:
        self._answers = None
        self.classes_ = self.classes_ + session.new_classes
        inputs = self._inputs(session.visible_graph)
        if not self._keeps_weights():
            inputs.table = None
        self._learn(session, inputs)

    def scores(self, visible: VisibleGraph, nodes: np.ndarray) -> np.ndarray:
        # All nodes are scored at once, whatever is asked: products of other shapes differ in their last digits.
        if self._answers is None or self._answers[0] is not visible:
            with torch.no_grad():
                self._answers = (visible, self._score_all(self._inputs(visible)).cpu().numpy())
        return self._answers[1][visible.rows(nodes)]

    def embeddings(self, visible: VisibleGraph, nodes: np.ndarray) -> np.ndarray:
        """(nodes, h) what the encoder makes of some nodes."""
        with torch.no_grad():
            return self._embed_all(self._inputs(visible)).cpu().numpy()[visible.rows(nodes)]

    def _embed_all(self, inputs: GraphInputs) -> torch.Tensor:
        if inputs.table is not None:
            return inputs.table[:, : self.settings.size]
        return self.network.encoder(self.network.encoder.rows(inputs, None))

    def _keeps_weights(self) -> bool:
        """Whether a session leaves what the network makes of a node as it is."""
        return False

    def _table(self, inputs: GraphInputs, rows: np.ndarray | None) -> torch.Tensor:
        """(r, width) what scores need to know of some rows, or of all: their embeddings, and whatever else."""
        return self.network.encoder(self.network.encoder.rows(inputs, rows))

    def embedding_table(self, visible: VisibleGraph) -> np.ndarray:
        inputs = self._inputs(visible)
        if inputs.table is None:
            with torch.no_grad():
                inputs.table = self._table(inputs, None)
        return inputs.table.cpu().numpy()

    def embed_rows(self, visible: VisibleGraph, rows: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return self._table(self._make_inputs(visible, sparing=True), rows).cpu().numpy()

    def use_table(self, visible: VisibleGraph, table: np.ndarray) -> None:
        self._answers = None
        self._inputs(visible).table = torch.from_numpy(table).to(self.device)

    def _inputs(self, visible: VisibleGraph) -> GraphInputs:
        """The graph on the device; the last one is kept, with what was computed for it."""
        if self._last_inputs is None or self._last_inputs[0] is not visible:
            self._last_inputs = None  # make room before the next one
            self._last_inputs = (visible, self._make_inputs(visible))
        return self._last_inputs[1]

    def _make_inputs(self, visible: VisibleGraph, *, sparing: bool = False) -> GraphInputs:
        return GraphInputs(visible, self.device, sparing=sparing)

    def _data_stored(self) -> dict[str, int]:
        """Bytes kept of the data, by kind."""
        return {}

    def stored(self) -> dict[str, int]:
        weights = sum(value.nbytes for value in self.network.state_dict().values()) if self.stage != "new" else 0
        return {"nodes": 0, "features": 0, "embeddings": 0, **self._data_stored(), "weights": weights}

    # State

    def _identity(self) -> dict[str, Any]:
        return {"method": self.name, "settings": self.settings.as_json(), "seed": self.seed}

    def _is_identity(self, saved: dict[str, Any]) -> bool:
        """Whether a saved learner is of the same kind. A setting that it does not know yet must have its default."""
        settings = {**type(self.settings)().as_json(), **(saved.get("settings") or {})}
        return all({**saved, "settings": settings}.get(key) == value for key, value in self._identity().items())

    def state(self) -> LearnerState:
        values: dict[str, Any] = {
            **self._identity(),
            "stage": self.stage,
            "classes": list(self.classes_),
            "sizes": dict(self.sizes),
            "track": self.track,
            "device": self.device.type,
            "random": generator_state(self.random),
            "pretraining_seconds": self.pretraining_seconds_,
            "pretraining_reused": self.pretraining_reused_,
        }
        tensors = {"generator": self.generator.get_state()}
        if self.stage != "new":
            values |= self._own_values()
            tensors |= with_prefix("network", copy_weights(self.network)) | self._own_tensors()
        if self.stage == "pre-training":
            values |= {"pretraining": self.pretraining.values()}
            tensors |= self.pretraining.tensors()
        elif self.stage not in ("new", "ready"):
            tensors |= with_prefix("pretrained", self.pretrained)
        return LearnerState(tensors, values)

    def load_state(self, state: LearnerState) -> None:
        values, tensors = state.values, state.tensors
        if not self._is_identity(values):
            raise InputError("the saved learner has another method, seed or settings than this one: use the same ones.")
        self.stage, self.classes_, self.sizes = values["stage"], tuple(values["classes"]), dict(values["sizes"])
        self.track = values["track"]
        self.pretraining_seconds_ = values["pretraining_seconds"]
        self.pretraining_reused_ = values["pretraining_reused"]
        self.random = generator_from(values["random"])
        if values["device"] == self.device.type:
            self.generator.set_state(tensors["generator"])
        else:  # generators of different devices have nothing in common
            self.generator.manual_seed(self.seed + 1)
        self._answers = None
        if self.stage == "new":
            return
        self._make_network()
        self.network.load_state_dict(without_prefix("network", tensors))
        self._load_own(values, tensors)
        self.pretrained = without_prefix("pretrained", tensors)
        if self.stage == "pre-training":
            self.pretraining.load(values["pretraining"], tensors)
