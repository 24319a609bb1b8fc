"""RanPAC: ridge regression on a random projection, here with every class counting the same.

Mark McDonnell, Dong Gong, Amin Parvaneh, Ehsan Abbasnejad, Anton van den Hengel: RanPAC: Random Projections and
Pre-trained Models for Continual Learning. NeurIPS 2023. Balanced as in AIR (Fang et al., 2408.10349)::

    h(v) = relu( z(v) P ) − m,   P ∈ R^{D×M} standard normal, drawn once by the seed

    G = Σ_c H_cᵀH_c / n_c,   μ_c = S_c / n_c,   W = (G + λ tr(G)/M · I)⁻¹ [μ_1 … μ_C],   score_c(v) = h(v)·W_c

H_c: the vectors h of the n_c labelled nodes of class c as rows, S_c: their sum; the head is that of SGC-ridge
(``RidgeSums``). m: the mean of relu(z P) over session 0's visible graph. λ is chosen by validation sessions.

**Departures** of ``form=balanced``, the default; ``form=released`` is without them.

- Every class counts the same. As released every node does: a class with five supports beside one with a thousand nodes
  is then never answered.
- h is centred. relu(z P) of vectors of unit length has a large mean that all nodes share, and the ridge spends its
  weight on it.
- λ is in units of the mean eigenvalue of G, and is chosen by the harmonic mean over known and new classes. As released
  it is one of 10⁻⁸ … 10⁸ with the least squared error on a fifth of the nodes of base classes, drawn at random; as in
  the few-shot form (2404.06622) at session 0 and not again, since five supports cannot be split.

Of both: z(v) are propagated features without training by default (``features=encoder`` takes the pre-trained encoder),
and no Gaussian samples stand in for supports: 800 of them for five are a weight of the class, which the balanced form
has without them. M is 10,000 as published; G then takes 0.8 GB. A model in production keeps G in every version, so
its M is 2,000 (32 MB).
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch

from graphfcl.errors import DivergenceError
from graphfcl.methods.bases.closed_form_learner import (
    CHUNK,
    Choice,
    ClosedFormLearner,
    ClosedFormSettings,
)
from graphfcl.methods.blocks import NodeTables, RowBlock, Table
from graphfcl.methods.learner import Progress, Tensors
from graphfcl.methods.settings import Count, Positive
from graphfcl.methods.shared.class_statistics import Parts, RidgeSums
from graphfcl.methods.shared.parts import OwnAttributes, Part
from graphfcl.methods.shared.validation_sessions import ValidationSessions

RELEASED_PENALTIES = tuple(10.0**power for power in range(-8, 9))
LEFT_OUT = 5  # one node in so many is left out to choose the released penalty


@dataclass(frozen=True)
class RanpacSettings(ClosedFormSettings):
    """The names of formulas are those of the module docstring."""

    form: Literal["balanced", "released"] = "balanced"
    """Every class counts the same and h is centred, or as the authors' code has it."""
    width: Count = 10_000
    """Columns of the random projection (M)."""
    penalties: tuple[Positive, ...] = (3.0, 0.1, 0.3, 1.0, 10.0, 30.0)
    """Candidates of the penalty (λ) of the balanced form; validation sessions choose."""
    penalty: Positive | None = None
    """Penalty (λ), instead of choosing it; of the released form not in units of G."""


def lifted_sums(block: RowBlock) -> Tensors:
    """(M,) Σ relu(z P) over visible rows."""
    rows, tensors = block.only_visible(block.rows("embeddings")), block.tensors
    lifted = (torch.relu(part * tensors["scales"] @ tensors["projection"]) for part in rows.split(CHUNK))
    return {"total": torch.stack([part.double().sum(dim=0) for part in lifted]).sum(dim=0)}


class Ranpac(ClosedFormLearner):
    """RanPAC; formulas and departures in the module docstring.

    projection: (D, M) P. centre: (M,) m, zeros in the released form.
    """

    title = "class-balanced ridge regression on a random projection; closed form, stores no node"
    reference = (
        "McDonnell et al.: RanPAC: Random Projections and Pre-trained Models for Continual Learning. NeurIPS 2023"
    )
    settings_type = RanpacSettings
    production_settings: ClassVar[dict[str, Any]] = {"width": 2000}
    lasting_tensors = (*ClosedFormLearner.lasting_tensors, "projection.")
    settings: RanpacSettings
    choices: ClassVar[dict[str, str]] = {"penalty": "penalties"}

    def __init__(self, settings: Any = None, *, seed: int = 0, device: str | torch.device = "cpu") -> None:
        super().__init__(settings, seed=seed, device=device)
        self.projection, self.centre = torch.zeros(0, 0), torch.zeros(0)

    @property
    def _balanced(self) -> bool:
        return self.settings.form == "balanced"

    def parts(self) -> tuple[Part, ...]:
        return (*super().parts(), OwnAttributes(self, "projection", "centre", name="projection", stored_as="weights"))

    # h

    def _fix(self, inputs: NodeTables, embeddings: Table) -> None:
        random = np.random.default_rng([self.seed, 7])
        drawn = random.standard_normal((self._width, self.settings.width), dtype=np.float32)
        self.projection = torch.from_numpy(drawn).to(self.device)
        self.centre = torch.zeros(self.settings.width, device=self.device)
        if self._balanced:
            tensors = {"scales": self._scales, "projection": self.projection}
            sums = inputs.sums("lifted", lifted_sums, tables={"embeddings": embeddings}, tensors=tensors)
            self.centre = (sums["total"] / inputs.node_count).float()

    def _points(self, vectors: torch.Tensor) -> torch.Tensor:
        """(m, M) h in 64 bits: 32 would round it differently with the number of vectors that come together."""
        return torch.relu(vectors.double() @ self.projection.double()) - self.centre.double()

    # The ridge

    def _empty(self, size: int) -> RidgeSums:
        return RidgeSums.empty(self.settings.width if size else 0, self.device, balanced=self._balanced)

    def _reweighted(self, statistics: RidgeSums, earlier: Parts, counts: torch.Tensor) -> RidgeSums:
        return statistics.reweighted(earlier, counts)

    def _candidates(self) -> list[Choice]:
        if self._balanced or self.settings.penalty is not None:
            return super()._candidates()
        return [{"penalty": penalty} for penalty in RELEASED_PENALTIES]

    def _head(self, statistics: RidgeSums, inputs: NodeTables, many: int, choice: Choice) -> Tensors:  # noqa: ARG002
        penalty = choice["penalty"]
        if not self._balanced:
            penalty = penalty / max(float(statistics.gram.diagonal().mean()), 1e-300)  # solve() multiplies by it
        weights = statistics.solve(penalty, torch.ones(self.settings.width, dtype=torch.float64, device=self.device))
        return {"projection": self.projection, "centre": self.centre, "weights": weights.float()}

    @staticmethod
    def answers(vectors: torch.Tensor, head: Tensors) -> torch.Tensor:
        """(m, C) h·W."""
        return (torch.relu(vectors @ head["projection"]) - head["centre"]) @ head["weights"]

    # The penalty of the released form

    def _choose(
        self, statistics: RidgeSums, inputs: NodeTables, validation: ValidationSessions, progress: Progress
    ) -> Choice:
        candidates = self._candidates()
        if self._balanced or len(candidates) == 1:
            return super()._choose(statistics, inputs, validation, progress)
        nodes, columns = validation.train
        left_out = drawn_fifth(nodes.size, self.seed)
        kept, empty = (nodes[~left_out], columns[~left_out]), self._empty(self._width)
        sums = self._with(empty, inputs, kept, validation.known_count)
        queries = self._rows(inputs, nodes[left_out])
        wanted = torch.nn.functional.one_hot(torch.tensor(columns[left_out]), validation.known_count).to(self.device)
        errors = []
        for choice in candidates:
            try:
                head = self._solved(sums, inputs, 0, choice)
                scores = self._scores(queries, {**head, "counts": torch.ones_like(sums.counts)})
                errors.append(float(((scores - wanted) ** 2).mean()))
            except DivergenceError:
                errors.append(float("inf"))
        return candidates[int(np.argmin(errors))]


def drawn_fifth(count: int, seed: int) -> np.ndarray:
    """(count,) true for a fifth of the nodes. Drawn, since nodes that stand in a row are often of one class."""
    return np.random.default_rng([seed, 8]).permutation(count) % LEFT_OUT == 0
