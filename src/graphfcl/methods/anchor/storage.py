"""How ANCHOR is stored: in the few bits to which session 0 rounded it."""

from collections.abc import Callable
from typing import Any, Self

import torch

from graphfcl.methods.anchor.class_sums import Anchors
from graphfcl.methods.anchor.settings import AnchorSettings, Neighbourhood
from graphfcl.methods.learner import Tensors
from graphfcl.methods.shared.parts import Part
from graphfcl.methods.shared.untrained_features import in_steps, upper_triangle

FIRST_LAYER = "network.encoder.first.weight"
HEAD = "head.weight"
HEAD_COUNTS = "head.counts"


class AnchorKnowledge(Part):
    """What ANCHOR knows besides its encoder.

    frame: what session 0 fixed: basis, centres, middle, whitening. head: (M, D) weights of the head on session 0, in 16
    bits. head_steps: those of its training. head_counts: (M,) labels of each class that it was trained on.
    anchors: class sums. neighbourhood: what validation sessions chose.
    first_layer: answers the encoder's first weights, which are stored in 8 bits once the frame is fixed.
    encoder_input: what the encoder reads.
    """

    def __init__(self, neighbourhood: Neighbourhood, first_layer: Callable[[], torch.Tensor]) -> None:
        self.frame: Tensors = {}
        self.head = torch.zeros(0, 0, dtype=torch.float16)
        self.head_steps = 0
        self.head_counts = torch.zeros(0, dtype=torch.float64)
        self.anchors = Anchors.empty()
        self.neighbourhood = neighbourhood
        self._first_layer = first_layer
        self.encoder_input = "graph"

    def round_first_layer(self) -> None:
        """To the 8 bits in which it is stored."""
        steps, scales = in_steps(self._first_layer())
        self._first_layer().copy_(steps * scales)
        self.frame["first.scales"] = scales

    @property
    def is_fixed(self) -> bool:
        """Whether session 0 is over."""
        return "whitening" in self.frame

    def _stored_frame(self) -> Tensors:
        """The basis in 8 bits, and of the root, which is triangular, the upper half in 16."""
        frame = {name: tensor.cpu() for name, tensor in self.frame.items()}
        root = frame.pop("whitening")
        rows, columns = torch.triu_indices(*root.shape)
        frame["root"] = root[rows, columns].half()
        return {**frame, "basis": (frame["basis"] / frame["basis.scales"]).round().to(torch.int8)}

    def chosen(self) -> dict[str, Any]:
        return {**self.neighbourhood._asdict(), **self._input_values()}

    def _input_values(self) -> dict[str, Any]:
        """Said where it is not the graph."""
        return {} if self.encoder_input == "graph" else {"encoder_input": self.encoder_input}

    def weights(self, settings: AnchorSettings) -> tuple[float, float, float]:
        """a₀, a₂ and a_z."""
        return settings.raw_weight, self.neighbourhood.hop_weight, settings.encoder_weight

    def stored(self) -> dict[str, int]:
        embeddings = self.anchors.sums.nbytes + self.anchors.counts.nbytes
        if not self.is_fixed:
            return {"embeddings": embeddings}
        spared = 3 * self._first_layer().nbytes // 4  # of the network's 32 bits
        frame = sum(tensor.nbytes for tensor in self._stored_frame().values())
        return {"embeddings": embeddings, "weights": frame - spared + self.head.nbytes}

    def values(self) -> dict[str, Any]:
        return {"hop": list(self.neighbourhood), "head_steps": self.head_steps, **self._input_values()}

    def tensors(self) -> Tensors:
        kept: Tensors = {}
        if self.is_fixed:
            steps = (self._first_layer() / self.frame["first.scales"]).round().to(torch.int8)
            kept = {FIRST_LAYER: steps.cpu()}
            kept |= {f"frame.{name}": tensor for name, tensor in self._stored_frame().items()}
        head = {HEAD: self.head.cpu(), HEAD_COUNTS: self.head_counts} if len(self.head) else {}  # labels change it
        return {**kept, **head, **self.anchors.tensors()}

    def load(self, values: dict[str, Any], tensors: Tensors, device: torch.device) -> None:
        self.neighbourhood = Neighbourhood(*values["hop"]).check()
        self.frame = {
            name.removeprefix("frame."): tensor.to(device)
            for name, tensor in tensors.items()
            if name.startswith("frame.")
        }
        if self.frame:
            self._first_layer().mul_(self.frame["first.scales"])
            self.frame["basis"] = self.frame["basis"].float() * self.frame["basis.scales"]
            self.frame["whitening"] = upper_triangle(self.frame.pop("root").float())
        self.head, self.head_steps = tensors.get(HEAD, self.head[:0]).to(device), values["head_steps"]
        self.anchors = Anchors.load(tensors, device)
        self.head_counts = tensors[HEAD_COUNTS].cpu() if len(self.head) else self.head_counts[:0]
        self.encoder_input = values.get("encoder_input", "graph")

    def become(self, other: Self, device: torch.device) -> None:  # noqa: ARG002
        # Nothing of it is written to after session 0.
        self.frame, self.neighbourhood = dict(other.frame), other.neighbourhood
        self.encoder_input = other.encoder_input
        self.head, self.head_steps, self.anchors = other.head, other.head_steps, other.anchors
        self.head_counts = other.head_counts
