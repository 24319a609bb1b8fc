"""HAG-Meta: Hierarchical-Attention Graph Meta-learning.

Zhen Tan, Kaize Ding, Ruocheng Guo, Huan Liu: Graph Few-shot Class-incremental Learning. WSDM 2022.

A prototypical network on a graph encoder g_θ, trained in three stages:

1. pre-training of g_θ on the base classes (:mod:`graphfcl.methods.pretraining`);
2. Graph Pseudo Incremental Learning: episodes that rehearse incremental sessions with the pseudo-novel classes
   (:class:`graphfcl.methods.episodes.PseudoIncrementalSampler`), validated on held-out classes, then repeated on all
   pseudo-novel classes for the number of episodes that was best (``refit``);
3. incremental sessions, each with as many fine-tuning steps as validation sessions found useful, possibly none.

Prototype of a class known by few supports: p_k = Σ_{j∈S_k} λ_j z_j with node-level attention λ (NLA, g_ψ); of a class
with many labels: the mean of its train nodes. p(y = k | q) = softmax_k(−‖z_q − p_k‖²).
Loss: −(1/|Q|) Σ_q (1 + w_{y_q}) log p(y_q | q), with w from task-level attention (TLA, g_φ).

Where this departs from the paper or the authors' code:

- in an episode and in a fine-tuning step, base prototypes are means over 20 sampled supports a class, disjoint from
  the queries; at validation and evaluation they are complete;
- fine-tuning in a strict session sees no query label: its queries are train nodes and the supports themselves, each
  left out of its own prototype;
- under the track ``isolated`` prototypes are kept as they were computed and the encoder is not fine-tuned, since
  nothing old could be encoded again.
"""

from typing import Any, ClassVar

import numpy as np
import torch

from graphfcl.errors import DivergenceError, InputError
from graphfcl.graph import VisibleGraph
from graphfcl.measures import balanced_accuracy, confusion_matrix
from graphfcl.methods.episodes import Episode, KnownClasses, NodePools
from graphfcl.methods.hag_meta_settings import HagMetaSettings
from graphfcl.methods.learner import SILENT, Learner, LearnerState, Progress
from graphfcl.methods.losses import LOSSES
from graphfcl.methods.meta_training import MetaTraining
from graphfcl.methods.pretraining import Pretraining
from graphfcl.methods.prototype_network import Embedding, PrototypeNetwork
from graphfcl.methods.training import (
    check_finite,
    copy_weights,
    generator_from,
    generator_state,
    with_prefix,
    without_prefix,
)
from graphfcl.methods.validation import Labelled, ValidationSessions
from graphfcl.nn import ENCODERS, TASK_ATTENTIONS, GraphInputs, Linear, NodeLevelAttention
from graphfcl.stream import BaseSession, PaperSession, Session

FINE_TUNING_DRAWS = 3  # validation draws on which each candidate is tried


class HagMeta(Learner):
    """The learner. Same settings, seed and machine: the same numbers."""

    trains_on_query_labels: ClassVar[bool] = True

    def __init__(
        self, settings: HagMetaSettings | None = None, *, seed: int = 0, device: str | torch.device = "cpu"
    ) -> None:
        self.settings = settings or HagMetaSettings()
        self.seed = seed
        self.device = torch.device(device)
        self.stage = "new"
        self.random = np.random.default_rng([seed, 1])
        self.generator = torch.Generator(self.device).manual_seed(seed)
        self.meta_episodes_ = 0  # as many as validation found best
        self.fine_tuning_ = (0, 0.0)  # steps and rate that validation found best
        self.sizes = {"features": 0, "base": 0, "many": 0, "way": 1}
        self.track = "transductive"
        self.train: Labelled = _nothing()
        self.supports: Labelled = _nothing()
        self.tasks: list[list[int]] = []
        self.kept_prototypes: torch.Tensor | None = None
        self.kept_counts = np.zeros(0, dtype=np.int64)
        self._last_inputs: GraphInputs | None = None
        self._answers: tuple[VisibleGraph, np.ndarray] | None = None  # of the visible graph last asked about

    def _build(self) -> None:
        """The networks, with weights drawn from the seed, and what trains them."""
        chosen, sizes = self.settings, self.sizes
        start = torch.Generator().manual_seed(self.seed)
        encoder = ENCODERS[chosen.encoder](
            sizes["features"], chosen.hidden, chosen.size, start, dropout=chosen.dropout, last_relu=chosen.last_relu
        ).to(self.device)
        head = Linear(chosen.size, sizes["base"], start).to(self.device)
        nla = NodeLevelAttention(sizes["features"], 32, 16, start) if chosen.nla else None
        tla = None
        if chosen.tla is not None:
            tla = TASK_ATTENTIONS[chosen.tla](sizes["base"], sizes["way"], chosen.size, start)
        hard = chosen.task_weighting == "hard"
        self.network = PrototypeNetwork(encoder, nla, tla, LOSSES[chosen.loss], hard=hard).to(self.device)
        self.pretraining = Pretraining(encoder, head, chosen.pretraining)
        self.meta = MetaTraining(self.network, chosen)
        self.pretrained: dict[str, torch.Tensor] = {}

    # Session 0

    def fit(self, base: BaseSession, progress: Progress = SILENT) -> None:
        inputs = self._inputs(base.visible_graph)
        if self.stage == "new":
            self._start(base, inputs)
        elif self.classes_ != base.classes or self.track != base.track:
            raise InputError(
                "this learner was fitted on other classes or another track: make a new one to fit it anew."
            )
        validation = ValidationSessions.draw(base, self.seed)
        if self.stage == "pre-training":
            self.pretraining.run(base, inputs, self.generator, progress, self)
            self.pretrained = copy_weights(self.network)
            self._enter("meta-training" if self._can_meta_train(base) else "choosing", progress)
        if self.stage == "meta-training":
            self.meta_episodes_ = self.meta.run(
                base, inputs, self._step, self.random, lambda: self._validate(inputs, validation), progress, self
            )
            self._enter("choosing", progress)
        if self.stage == "choosing":
            self._choose_fine_tuning(base, inputs, validation, progress)
        if self.stage == "refit":
            if self.meta.episode == 0:
                self.network.load_state_dict(self.pretrained)
            self.meta.repeat(base, inputs, self._step, self.random, self.meta_episodes_, progress, self)
            self._enter("ready", progress)
        self._refuse_chance(base, inputs)
        if self.track == "isolated" and self.kept_prototypes is None:
            self.kept_prototypes = self._prototypes(self.network.embed(inputs))
            self.kept_counts = np.bincount(self.train[1], minlength=len(self.classes_))
            self.train = _nothing()

    def _inputs(self, visible: VisibleGraph) -> GraphInputs:
        """The graph on the device; the last one is kept, with what was computed for it."""
        if self._last_inputs is None or self._last_inputs.visible is not visible:
            self._last_inputs = GraphInputs(visible, self.device)
        return self._last_inputs

    def _start(self, base: BaseSession, inputs: GraphInputs) -> None:
        self.classes_ = base.classes
        self.sizes = {
            "features": inputs.feature_count,
            "base": len(base.base_classes),
            "many": len(base.classes),
            "way": base.way,
        }
        self.track = base.track
        self.train = (base.train, base.train_labels)
        self.tasks = [list(task) for task in base.pseudo_novel_tasks]
        self._build()
        self.stage = "pre-training"

    def _enter(self, stage: str, progress: Progress) -> None:
        """Start a stage; a checkpoint taken here begins it."""
        self.stage = stage
        self.meta.begin()
        progress.checkpoint(self)

    def _can_meta_train(self, base: BaseSession) -> bool:
        return self.settings.gpil and len(base.pseudo_novel_classes) > 0

    def _step(
        self, inputs: GraphInputs, episode: Episode, optimiser: torch.optim.Adam, *, by_class: bool = False
    ) -> torch.Tensor:
        optimiser.zero_grad(set_to_none=True)
        loss = self.network.episode_loss(inputs, episode, self.generator, by_class=by_class)
        loss.backward()
        optimiser.step()
        return loss.detach()

    # Validation and choices

    def _validate(self, inputs: GraphInputs, validation: ValidationSessions) -> float:
        embedding = self.network.embed(inputs)

        def predict(many: Labelled, few: Labelled, count: int, nodes: np.ndarray) -> np.ndarray:
            prototypes = self.network.prototypes(embedding, many, few, count)
            return self.network.scores(embedding, nodes, prototypes).argmax(dim=1).cpu().numpy()

        return validation.score(predict)

    def _choose_fine_tuning(
        self, base: BaseSession, inputs: GraphInputs, validation: ValidationSessions, progress: Progress
    ) -> None:
        """Run the validation sessions with each candidate; no step at all comes first and wins a draw."""
        candidates = ((0, 0.0), *self.settings.fine_tuning)
        if self.track == "isolated":
            self.fine_tuning_ = (0, 0.0)
        elif base.protocol == "paper":
            self.fine_tuning_ = (1, self.settings.learning_rate)
        elif self.settings.fine_tuning_steps is not None:
            self.fine_tuning_ = (self.settings.fine_tuning_steps, self.settings.fine_tuning_rate)
        elif validation.has_new_classes:
            start, best = copy_weights(self.network), -np.inf
            for number, (steps, rate) in enumerate(candidates):
                score = self._try_fine_tuning(inputs, validation, start, steps, rate)
                if score > best:
                    best, self.fine_tuning_ = score, (steps, rate)
                progress.step("choosing fine-tuning", number + 1, len(candidates), score=best)
            self.network.load_state_dict(start)
        held_out = len(base.validation_columns) > 0
        repeat = self._can_meta_train(base) and self.settings.refit and held_out and self.meta_episodes_ > 0
        self._enter("refit" if repeat else "ready", progress)

    def _try_fine_tuning(
        self,
        inputs: GraphInputs,
        validation: ValidationSessions,
        start: dict[str, torch.Tensor],
        steps: int,
        rate: float,
    ) -> float:
        """The validation score after sessions with so many steps; −∞ if they diverge."""
        scores = []
        for draw in range(FINE_TUNING_DRAWS):
            self.network.load_state_dict(start)
            alone = validation.only(draw)
            try:
                for known in alone.sessions():
                    self._fine_tune(inputs, known, steps, rate)
            except DivergenceError:
                return -np.inf
            scores.append(self._validate(inputs, alone))
        return float(np.mean(scores))

    def _refuse_chance(self, base: BaseSession, inputs: GraphInputs) -> None:
        """A collapsed encoder puts every node in one place; its table would look like a result."""
        embedding, count = self.network.embed(inputs), len(base.classes)
        prototypes = self.network.prototypes(embedding, (base.train, base.train_labels), _nothing(), count)
        found = self.network.scores(embedding, base.validation, prototypes).argmax(dim=1).cpu().numpy()
        accuracy = balanced_accuracy(confusion_matrix(base.validation_labels, found, count))
        sizes = np.bincount(base.validation_labels, minlength=count).clip(min=1)
        error = np.sqrt((1 / count) * (1 - 1 / count) * (1 / sizes).sum()) / count  # of a balanced accuracy by chance
        if count > 1 and not accuracy > 1 / count + 2 * error:
            raise DivergenceError(
                f"after training the balanced accuracy on validation nodes is {accuracy:.3f} with {count} classes, no "
                "better than chance: the encoder collapsed, or neither features nor edges tell the classes apart; try "
                "another seed, a smaller learning rate, or last_relu=False."
            )

    # Incremental sessions

    def learn(self, session: Session) -> None:
        self._answers = None
        new = list(range(len(self.classes_), len(self.classes_) + len(session.new_classes)))
        self.classes_ = self.classes_ + session.new_classes
        if new:
            self.tasks.append(new)
        inputs = self._inputs(session.visible_graph)
        if self.track == "isolated":
            self._keep_prototypes(inputs, session)
            return
        # More labels for a class of session 0 join its train nodes, all others are supports.
        many = session.support_labels < self.sizes["many"]
        self.train = _joined(self.train, session.supports[many], session.support_labels[many])
        self.supports = _joined(self.supports, session.supports[~many], session.support_labels[~many])
        if isinstance(session, PaperSession):
            episode = self._known_classes().with_queries(
                session.queries, session.query_labels, self.settings.base_supports, self.random
            )
            loss = self._step(inputs, episode, self.meta.new_optimiser(self.fine_tuning_[1]))
            check_finite(loss, "the gradient step of session", session.number)
        else:
            self._fine_tune(inputs, self._known_classes(), *self.fine_tuning_)

    def _known_classes(self) -> KnownClasses:
        return KnownClasses(
            pools=NodePools(*self.train, self.sizes["many"]),
            base_count=self.sizes["base"],
            many=self.sizes["many"],
            class_count=len(self.classes_),
            supports=self.supports[0],
            support_classes=self.supports[1],
            tasks=self.tasks,
            way=self.sizes["way"],
        )

    def _fine_tune(self, inputs: GraphInputs, known: KnownClasses, steps: int, rate: float) -> None:
        optimiser = self.meta.new_optimiser(rate)
        for number in range(steps):
            episode = known.sample(self.settings.base_supports, self.settings.queries, self.random)
            check_finite(self._step(inputs, episode, optimiser, by_class=True), "fine-tuning", number + 1)

    def _keep_prototypes(self, inputs: GraphInputs, session: Session) -> None:
        """Track ``isolated``: prototypes of the supports as they are encoded now; a known class's mean moves on."""
        assert self.kept_prototypes is not None
        count = len(self.classes_)
        here = (session.supports, session.support_labels)
        fresh = self.network.prototypes(self.network.embed(inputs), _nothing(), here, count)
        added = np.bincount(session.support_labels, minlength=count)
        kept = np.pad(self.kept_counts, (0, count - self.kept_counts.size))
        share = torch.from_numpy(added / np.maximum(1, kept + added)).to(fresh)[:, None]
        old = torch.cat([self.kept_prototypes, fresh[len(self.kept_prototypes) :]])
        self.kept_prototypes, self.kept_counts = (1 - share) * old + share * fresh, kept + added

    # Scores

    def scores(self, visible: VisibleGraph, nodes: np.ndarray) -> np.ndarray:
        # All nodes are scored at once, whatever is asked: products of other shapes differ in their last digits.
        if self._answers is None or self._answers[0] is not visible:
            embedding = self.network.embed(self._inputs(visible))
            prototypes = self._prototypes(embedding) if self.kept_prototypes is None else self.kept_prototypes
            answers = self.network.scores(embedding, visible.nodes, prototypes)
            self._answers = (visible, answers.cpu().numpy())
        return self._answers[1][visible.rows(nodes)]

    def _prototypes(self, embedding: Embedding) -> torch.Tensor:
        return self.network.prototypes(embedding, self.train, self.supports, len(self.classes_))

    def chosen(self) -> dict[str, Any]:
        return {
            "episodes": self.meta_episodes_,
            "fine_tuning_steps": self.fine_tuning_[0],
            "fine_tuning_rate": self.fine_tuning_[1],
        }

    @property
    def stored_bytes(self) -> int:
        kept = 0 if self.kept_prototypes is None else self.kept_prototypes.nbytes + self.kept_counts.nbytes
        return kept + sum(array.nbytes for array in (*self.train, *self.supports))

    # State

    def _identity(self) -> dict[str, Any]:
        return {"method": "hag-meta", "settings": self.settings.as_json(), "seed": self.seed}

    def state(self) -> LearnerState:
        values: dict[str, Any] = {
            **self._identity(),
            "stage": self.stage,
            "classes": list(self.classes_),
            "sizes": dict(self.sizes),
            "track": self.track,
            "tasks": [list(task) for task in self.tasks],
            "device": self.device.type,
            "meta_episodes": self.meta_episodes_,
            "fine_tuning": list(self.fine_tuning_),
            "random": generator_state(self.random),
        }
        tensors = {
            "generator": self.generator.get_state(),
            **_array_tensors("train", self.train),
            **_array_tensors("supports", self.supports),
            "kept_counts": torch.from_numpy(self.kept_counts),
        }
        if self.kept_prototypes is not None:
            tensors["kept_prototypes"] = self.kept_prototypes.cpu()
        if self.stage != "new":
            tensors |= with_prefix("network", copy_weights(self.network))
        if self.stage not in ("new", "ready"):
            tensors |= with_prefix("pretrained", self.pretrained) | self.pretraining.tensors() | self.meta.tensors()
            values |= {"pretraining": self.pretraining.values(), "meta": self.meta.values()}
        return LearnerState(tensors, values)

    def load_state(self, state: LearnerState) -> None:
        values, tensors = state.values, state.tensors
        if any(values.get(key) != value for key, value in self._identity().items()):
            raise InputError("the saved learner has another method, seed or settings than this one: use the same ones.")
        self.stage, self.classes_, self.sizes = values["stage"], tuple(values["classes"]), dict(values["sizes"])
        self.track, self.tasks = values["track"], [list(task) for task in values["tasks"]]
        self.meta_episodes_ = values["meta_episodes"]
        self.fine_tuning_ = (values["fine_tuning"][0], values["fine_tuning"][1])
        self.random = generator_from(values["random"])
        if values["device"] == self.device.type:
            self.generator.set_state(tensors["generator"])
        else:  # generators of different devices have nothing in common
            self.generator.manual_seed(self.seed + 1)
        self.train, self.supports = _tensor_arrays("train", tensors), _tensor_arrays("supports", tensors)
        self.kept_counts = tensors["kept_counts"].numpy()
        kept = tensors.get("kept_prototypes")
        self.kept_prototypes = None if kept is None else kept.to(self.device)
        self._answers = None
        if self.stage == "new":
            return
        self._build()
        self.network.load_state_dict(without_prefix("network", tensors))
        if self.stage == "ready":
            return
        self.pretrained = without_prefix("pretrained", tensors)
        self.pretraining.load(values["pretraining"], tensors)
        self.meta.load(values["meta"], tensors)


def _nothing() -> Labelled:
    return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)


def _joined(labelled: Labelled, nodes: np.ndarray, labels: np.ndarray) -> Labelled:
    return np.concatenate([labelled[0], nodes]), np.concatenate([labelled[1], labels])


def _array_tensors(name: str, labelled: Labelled) -> dict[str, torch.Tensor]:
    return {f"{name}.nodes": torch.from_numpy(labelled[0]), f"{name}.labels": torch.from_numpy(labelled[1])}


def _tensor_arrays(name: str, tensors: dict[str, torch.Tensor]) -> Labelled:
    return tensors[f"{name}.nodes"].numpy(), tensors[f"{name}.labels"].numpy()
