"""HAG-Meta: Hierarchical-Attention Graph Meta-learning.

Zhen Tan, Kaize Ding, Ruocheng Guo, Huan Liu: Graph Few-shot Class-incremental Learning. WSDM 2022.

To understand one episode, read in this order:

1. this file: which episodes are drawn, what they minimise, and what a session does;
2. ``shared/meta_training.py``: draw an episode, take one step, validate now and then;
3. ``shared/episodes.py``: what an episode is, and how pseudo-incremental ones are drawn;
4. ``shared/sampling.py``: drawing nodes of classes;
5. ``shared/prototype_network.py``: encode, attend to supports (NLA), prototypes, distances;
6. ``shared/prototypes.py``: the formulas of the last step;
7. ``hag_meta/network.py``: task-level attention (TLA) and the losses it weighs.

A prototypical network on a graph encoder g_θ, trained in three stages:

1. pre-training of g_θ on the base classes (:mod:`graphfcl.methods.shared.supervised_training`);
2. Graph Pseudo Incremental Learning: episodes that rehearse incremental sessions with the pseudo-novel classes
   (:class:`graphfcl.methods.shared.episodes.PseudoIncrementalSampler`), validated on held-out classes, three times on
   different ones, then repeated on all pseudo-novel classes for the middle number of episodes (``refit``);
3. incremental sessions, each with as many fine-tuning steps as validation sessions found useful, possibly none.

Prototype of a class known by few supports: p_k = Σ_{j∈S_k} λ_j z_j with node-level attention λ (NLA, g_ψ); of a class
with many labels: the mean of its train nodes. p(y = k | q) = softmax_k(−‖z_q − p_k‖²).
Loss: −(1/|Q|) Σ_q (1 + w_{y_q}) log p(y_q | q), with w from task-level attention (TLA, g_φ).

Where this departs from the paper or the authors' code:

- in an episode and in a fine-tuning step, base prototypes are means over 20 sampled supports per class, disjoint from
  the queries; at validation and evaluation they are complete;
- fine-tuning in a strict session sees no query label: its queries are train nodes and the supports themselves, each
  left out of its own prototype;
- under the track ``isolated`` prototypes are kept as they were computed and the encoder is not fine-tuned, since
  nothing old could be encoded again.
"""

from typing import Any, ClassVar

import numpy as np
import torch

from graphfcl.graph.visible import VisibleGraph
from graphfcl.methods.bases.episodic_learner import EpisodicLearner
from graphfcl.methods.hag_meta.network import LOSSES, TASK_ATTENTIONS, HagMetaNetwork
from graphfcl.methods.hag_meta.settings import HagMetaSettings
from graphfcl.methods.learner import Labelled, Progress, Tensors
from graphfcl.methods.shared.captured_steps import CapturedSteps
from graphfcl.methods.shared.episodes import Episode, KnownClasses, PseudoIncrementalSampler
from graphfcl.methods.shared.fine_tuning import FineTuning, score_after_sessions
from graphfcl.methods.shared.parts import OwnAttributes, Part
from graphfcl.methods.shared.prototype_network import NodeLevelAttention
from graphfcl.methods.shared.sampling import NodePools
from graphfcl.methods.shared.training_state import check_finite, copy_weights
from graphfcl.methods.shared.validation_sessions import ValidationSessions
from graphfcl.nn import Encoder, GraphInputs
from graphfcl.stream.sessions import BaseSession, PaperSession, Session


class HagMeta(EpisodicLearner):
    """HAG-Meta; equations and deviations in the module docstring.

    tasks: columns of every task after the base task, oldest first.
    """

    name: ClassVar[str] = "hag-meta"
    title: ClassVar[str] = "pseudo-incremental meta-training with node-level and task-level attention"
    reference: ClassVar[str] = "Tan, Ding, Guo, Liu: Graph Few-shot Class-incremental Learning. WSDM 2022"
    settings_type: ClassVar[type[Any]] = HagMetaSettings
    # Sessions of a model in production have any number of classes, which the printed attention cannot take.
    production_settings: ClassVar[dict[str, Any]] = {"tla": "invariant"}
    trains_on_query_labels: ClassVar[bool] = True
    settings: HagMetaSettings
    network: HagMetaNetwork

    def __init__(self, settings: Any = None, *, seed: int = 0, device: str | torch.device = "cpu") -> None:
        super().__init__(settings, seed=seed, device=device)
        self.fine_tuning = FineTuning(self.settings)
        self.tasks: list[list[int]] = []

    def parts(self) -> tuple[Part, ...]:
        return (*super().parts(), self.fine_tuning, OwnAttributes(self, values={"tasks": "tasks"}))

    # Session 0

    def _start(self, base: BaseSession, inputs: GraphInputs) -> None:
        self.tasks = [list(task) for task in base.pseudo_novel_tasks]
        super()._start(base, inputs)

    def _build(self, encoder: Encoder, start: torch.Generator) -> HagMetaNetwork:
        chosen, sizes = self.settings, self.sizes
        nla = NodeLevelAttention(sizes.features, 32, 16, start) if chosen.nla else None
        tla = None
        if chosen.tla is not None:
            tla = TASK_ATTENTIONS[chosen.tla](sizes.base, sizes.way, chosen.size, start)
        return HagMetaNetwork(encoder, nla, tla, LOSSES[chosen.loss], hard=chosen.task_weighting == "hard")

    def _can_meta_train(self, base: BaseSession) -> bool:
        return self.settings.gpil and super()._can_meta_train(base)

    def _sampler(self, base: BaseSession, pseudo_novel: np.ndarray) -> PseudoIncrementalSampler:
        return PseudoIncrementalSampler.of(base, pseudo_novel, self.settings.base_supports, self.settings.queries)

    def _episode_loss(self, inputs: GraphInputs, episode: Episode, *, by_class: bool = False) -> torch.Tensor:
        return self.network.episode_loss(inputs, episode, self.generator, by_class=by_class)

    def _captured_steps(self, inputs: GraphInputs, optimiser: torch.optim.Adam) -> CapturedSteps | None:
        return self.network.captured_steps(inputs, optimiser, self.generator)

    def _try_choices(
        self, base: BaseSession, inputs: GraphInputs, validation: ValidationSessions, progress: Progress
    ) -> None:
        if not self._chooses_steps(base) or not validation.has_new_classes:
            return
        start = copy_weights(self.network)

        def score(steps: int, rate: float) -> float:
            return self._try_fine_tuning(inputs, validation, start, steps, rate)

        self.fine_tuning.try_out(score, progress)
        self.network.load_state_dict(start)

    def _chooses_steps(self, base: BaseSession) -> bool:
        return self.track != "isolated" and base.protocol != "paper" and self.fine_tuning.fixed is None

    def _settle_choices(self, base: BaseSession) -> None:
        if self.fine_tuning.scores:
            self.fine_tuning.settle()
        elif self.track == "isolated":
            self.fine_tuning.take(0, 0.0)
        elif base.protocol == "paper":
            self.fine_tuning.take(1, self.settings.learning_rate)
        else:
            self.fine_tuning.take(*(self.fine_tuning.fixed or self.fine_tuning.mildest))

    def _try_fine_tuning(
        self, inputs: GraphInputs, validation: ValidationSessions, start: Tensors, steps: int, rate: float
    ) -> float:
        """The validation score after sessions with so many steps; less than any if they diverge."""
        return score_after_sessions(
            validation,
            lambda: self.network.load_state_dict(start),
            lambda known: self._fine_tune(inputs, known, steps, rate),
            lambda alone: self._validate(inputs, alone),
        )

    # Incremental sessions

    def _learn(self, session: Session, inputs: GraphInputs) -> None:
        if session.new_classes:
            count = len(self.classes_)
            self.tasks.append(list(range(count - len(session.new_classes), count)))
        super()._learn(session, inputs)
        if isinstance(session, PaperSession):
            episode = self._known_classes().with_queries(
                session.queries, session.query_labels, self.settings.base_supports, self.random
            )
            loss = self.meta.step(inputs, episode, self.meta.new_optimiser(self.fine_tuning.rate))
            check_finite(loss, "the gradient step of session", session.number)
        else:
            self._fine_tune(inputs, self._known_classes(), self.fine_tuning.steps, self.fine_tuning.rate)

    def _fine_tune(self, inputs: GraphInputs, known: KnownClasses, steps: int, rate: float) -> None:
        """The same loss as in an episode, averaged by class."""
        optimiser = self.meta.new_optimiser(rate)
        for number in range(steps):
            episode = known.sample(self.settings.base_supports, self.settings.queries, self.random)
            check_finite(self.meta.step(inputs, episode, optimiser, by_class=True), "fine-tuning", number + 1)

    def _known_classes(self) -> KnownClasses:
        supports, support_classes = self.memory.supports
        return KnownClasses(
            pools=NodePools(*self.memory.train, self.sizes.many),
            base_count=self.sizes.base,
            many=self.sizes.many,
            class_count=len(self.classes_),
            supports=supports,
            support_classes=support_classes,
            tasks=self.tasks,
            way=self.sizes.way,
        )

    def _keeps_weights(self) -> bool:
        return self.fine_tuning.steps == 0

    def restate(self, visible: VisibleGraph, train: Labelled, supports: Labelled) -> bool:
        # A class without a node has no place in the episodes of fine-tuning.
        known = np.unique(np.concatenate([train[1], supports[1]]))
        if self.fine_tuning.steps and known.size < len(self.classes_):
            return False
        return super().restate(visible, train, supports)
