"""RanPAC: ridge regression on a random projection, here with equal class weights.

Mark McDonnell, Dong Gong, Amin Parvaneh, Ehsan Abbasnejad, Anton van den Hengel: RanPAC: Random Projections and
Pre-trained Models for Continual Learning. NeurIPS 2023. Balanced as in AIR (Fang et al., 2408.10349)::

    h(v) = relu( z(v) P ) − m,   P ∈ R^{D×M} standard normal, drawn once by the seed

    G = Σ_c H_cᵀH_c / n_c,   μ_c = S_c / n_c,   W = (G + λ tr(G)/M · I)⁻¹ [μ_1 … μ_C],   score_c(v) = h(v)·W_c

H_c holds the vectors h of the n_c labelled nodes of class c as rows, and S_c is their sum. The head is the same as in
SGC-ridge (``RidgeSums``). m is the mean of relu(z P) over the visible graph of session 0. Validation sessions choose λ.

**Differences from the published method** in ``form=balanced``, the default. ``form=released`` has none of them.

- All classes have the same weight. In the released code all nodes have the same weight, and a class with five supports
  is never predicted next to a class with a thousand nodes.
- h is centred. relu(z P) of vectors of unit length has a large mean that all nodes share and that would dominate the
  regression.
- λ is relative to the mean eigenvalue of G, and is chosen by the harmonic mean over known and new classes. In the
  released code, it is the value among 10⁻⁸ … 10⁸ with the smallest squared error on a random fifth of the nodes of the
  base classes. As in the few-shot variant (2404.06622), it is chosen at session 0 only, since five supports cannot be
  split.

In both forms, z(v) are propagated features by default; ``features=encoder`` uses the pre-trained encoder. No Gaussian
samples replace supports: 800 samples for five supports act as a class weight, which the balanced form has without them.
M is 10,000 as published, and G then takes 0.8 GB. A model in production stores G in every version, so its M is 2,000
(32 MB).
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
from graphfcl.methods.learner import Progress
from graphfcl.methods.settings import Count, Positive
from graphfcl.methods.shared.class_statistics import Parts, RidgeSums
from graphfcl.methods.shared.parts import OwnAttributes, Part
from graphfcl.methods.shared.validation_sessions import ValidationSessions
from graphfcl.methods.state import Tensors

RELEASED_PENALTIES = tuple(10.0**power for power in range(-8, 9))
LEFT_OUT = 5  # one node in five is left out to choose the penalty of the released form


@dataclass(frozen=True)
class RanpacSettings(ClosedFormSettings):
    """Settings of RanPAC. Symbols in brackets refer to the formulas in the module docstring."""

    form: Literal["balanced", "released"] = "balanced"
    """Equal class weights and centred h (balanced), or the authors' code (released)."""
    width: Count = 10_000
    """Number of columns of the random projection (M)."""
    penalties: tuple[Positive, ...] = (3.0, 0.1, 0.3, 1.0, 10.0, 30.0)
    """Candidates for the penalty (λ) of the balanced form; validation sessions choose one."""
    penalty: Positive | None = None
    """Fixed penalty (λ), relative to G in the balanced form only; none lets validation choose."""


def lifted_sums(block: RowBlock) -> Tensors:
    """Compute (M,) Σ relu(z P) over the visible rows of a chunk."""
    rows, tensors = block.only_visible(block.rows("embeddings")), block.tensors
    lifted = (torch.relu(part * tensors["scales"] @ tensors["projection"]) for part in rows.split(CHUNK))
    return {"total": torch.stack([part.double().sum(dim=0) for part in lifted]).sum(dim=0)}


class Ranpac(ClosedFormLearner):
    """RanPAC; the module docstring states the formulas and the differences from the published method.

    Attributes:
        projection: (D, M) P.
        centre: (M,) m, zeros in the released form.
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

    def _fit_vectors(self, inputs: NodeTables, embeddings: Table) -> None:
        random = np.random.default_rng([self.seed, 7])
        drawn = random.standard_normal((self._width, self.settings.width), dtype=np.float32)
        self.projection = torch.from_numpy(drawn).to(self.device)
        self.centre = torch.zeros(self.settings.width, device=self.device)
        if self._balanced:
            tensors = {"scales": self._scales, "projection": self.projection}
            sums = inputs.sums("lifted", lifted_sums, tables={"embeddings": embeddings}, tensors=tensors)
            self.centre = (sums["total"] / inputs.node_count).float()

    def _points(self, vectors: torch.Tensor) -> torch.Tensor:
        """Compute (m, M) h in 64 bits, so that rounding does not depend on the number of vectors m."""
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
        """Compute (m, C) h·W."""
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
    """Draw a (count,) mask of a fifth of the nodes. Consecutive nodes often have the same class, hence random."""
    return np.random.default_rng([seed, 8]).permutation(count) % LEFT_OUT == 0
