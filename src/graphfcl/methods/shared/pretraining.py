"""Pre-training of the encoder on the base classes (Section 4.1 of the paper), shared by all methods."""

import hashlib
from typing import Any

import torch

from graphfcl.methods.learner import EncoderStore, Learner, Progress, Tensors
from graphfcl.methods.settings import settings_as_json
from graphfcl.methods.shared.supervised_training import SupervisedTraining, base_part
from graphfcl.methods.shared.training_state import copy_weights, with_prefix, without_prefix
from graphfcl.nn import Encoder, GraphInputs, Linear
from graphfcl.stream.sessions import BaseSession

KEYS = ("encoder", "hidden", "size", "last_relu", "dropout", "pretraining")  # settings that an encoder depends on


class Pretraining:
    """The encoder of a graph, a protocol and a seed: trained here, or by another method before.

    training: the loop, a part of the learner while it runs.
    """

    def __init__(self, encoder: Encoder, head: Linear, settings: Any) -> None:
        self.encoder, self.settings = encoder, settings
        self.training = SupervisedTraining(encoder, head, settings.pretraining, name="pretraining")

    def run(
        self, base: BaseSession, inputs: GraphInputs, learner: Learner, generator: torch.Generator, progress: Progress
    ) -> Tensors:
        """The trained encoder, where the generator stands after it, and the seconds it took."""
        self.training.run(*base_part(base), inputs, generator, progress, learner)
        return {
            **with_prefix("encoder", copy_weights(self.encoder)),
            "generator": generator.get_state(),
            "seconds": torch.tensor(self.training.seconds, dtype=torch.float64),
        }

    def find(
        self,
        base: BaseSession,
        inputs: GraphInputs,
        learner: Learner,
        generator: torch.Generator,
        progress: Progress,
        encoders: EncoderStore,
    ) -> tuple[float, bool]:
        """Give the encoder its weights; how many seconds they took, and whether they were there already."""
        reused = True

        def compute() -> Tensors:
            nonlocal reused
            reused = False
            return self.run(base, inputs, learner, generator, progress)

        found = encoders.get(self.key(base, learner), compute)
        self.encoder.load_state_dict(without_prefix("encoder", found))
        generator.set_state(found["generator"])
        return float(found["seconds"]), reused

    def key(self, base: BaseSession, learner: Learner) -> dict[str, Any]:
        """What a pre-trained encoder depends on besides the graph."""
        train, validation = base_part(base)
        nodes = hashlib.sha256(b"".join(part.tobytes() for part in (*train, *validation)))
        settings = settings_as_json(self.settings)
        return {
            **{name: settings[name] for name in KEYS},
            "seed": learner.seed,
            "device": learner.device.type,
            "nodes": nodes.hexdigest(),
        }
