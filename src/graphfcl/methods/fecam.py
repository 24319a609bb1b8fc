"""FeCAM: nearest class mean by a Mahalanobis distance per class, calibrated for few labels.

Dipam Goswami, Yuyang Liu, Bartłomiej Twardowski, Joost van de Weijer: FeCAM: Exploiting the Heterogeneity of Class
Distributions in Exemplar-Free Continual Learning. NeurIPS 2023. Few labels: Goswami, Twardowski, van de Weijer:
Calibrating Higher-Order Statistics for Few-Shot Class-Incremental Learning with Pre-trained Vision Transformers. CVPR
Workshops 2024::

    x(v) = unit( sign(z)|z|^κ ),                             μ_c, Σ_c: mean and covariance of the x of class c
    Σ'_c = Σ_c + Σ_b w_cb Σ_b,   w_cb = softmax_b( τ cos(μ_c, μ_b) )      for classes c after session 0; b: of session 0
    S_c  = Σ'_c + γ d_c I + γ₂ o_c (1 − I)                   d_c, o_c: mean on and off the diagonal of Σ'_c
    N(S)_ij = S_ij / √(S_ii S_jj),    score_c(v) = −(x − p_c)ᵀ N(S_c)⁻¹ (x − p_c)

p_c is μ_c at unit length. For classes after session 0, it is moved by a share α towards similar classes, as in TEEN.
Validation sessions choose γ and α.

**Differences from the published method.**

- Tukey's power is applied to the absolute value and keeps the sign, because propagated features are centred and an
  encoder may have no last ReLU. On non-negative values it equals the paper's.
- Covariances are computed from the same vectors as distances. The released code normalises the vectors of distances
  but not those of covariances.
- N is the correlation matrix as in the formula. The few-shot code calls ``corrcoef`` on the covariance matrix, which
  treats its rows as data.
- γ is relative to the mean variance and applied once (released code: γ = γ₂ = 1, applied twice; few-shot code: 100).
  The off-diagonal term is off by default because it hurts with five supports (γ₂ = ``off_diagonal``). A factor β of Σ'
  would cancel in N.
- Session 0 is also scored by these distances, where the released code uses its trained head.
- z(v) are propagated features by default with at most 256 columns, because C classes store C·D² numbers.
- ``calibrated=false`` is FeCAM without its authors' extension for few labels.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch

from graphfcl.errors import DivergenceError, InputError
from graphfcl.methods.bases.closed_form_learner import Choice, ClosedFormLearner, ClosedFormSettings
from graphfcl.methods.blocks import NodeTables
from graphfcl.methods.settings import Positive, Share, Weight
from graphfcl.methods.shared.class_statistics import ClassMoments, calibrated_prototypes, similarity_weights
from graphfcl.methods.shared.untrained_features import unit_rows
from graphfcl.methods.state import Tensors

WIDEST = 256  # maximum number of columns of a vector


@dataclass(frozen=True)
class FecamSettings(ClosedFormSettings):
    """Settings of FeCAM. Symbols in brackets refer to the formulas in the module docstring."""

    rank: int = 128
    """Maximum number of columns of the basis of propagated features; a vector has twice as many."""
    power: Positive = 0.5
    """Exponent of Tukey's transformation (κ); 1 for none."""
    calibrated: bool = True
    """Calibrate covariances and means of later classes by similar classes of session 0."""
    temperature: Positive = 16.0
    """Factor of the cosines between classes in the softmax (τ)."""
    shrinkages: tuple[Positive, ...] = (10.0, 1.0, 3.0, 30.0, 100.0)
    """Candidates for the shrinkage to the diagonal (γ); validation sessions choose one."""
    shares: tuple[Share, ...] = (0.1, 0.0, 0.3)
    """Candidates for the share of similar classes in the mean of a new one (α); validation sessions choose one."""
    shrinkage: Positive | None = None
    """Fixed shrinkage to the diagonal (γ); none lets validation choose."""
    share: Share | None = None
    """Fixed share of similar classes (α); none lets validation choose."""
    off_diagonal: Weight = 0.0
    """Shrinkage to the mean of the off-diagonal entries (γ₂)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.size if self.features == "encoder" else 2 * self.rank) > WIDEST:
            name, most = ("size", WIDEST) if self.features == "encoder" else ("rank", WIDEST // 2)
            raise InputError(f"{name} is {getattr(self, name)}; a matrix for each class needs at most {most}.")


class Fecam(ClosedFormLearner):
    """FeCAM; the module docstring states the formulas and the differences from the published method."""

    title = "Mahalanobis distances with class covariances, calibrated for few labels; training-free"
    reference = (
        "Goswami et al.: FeCAM: Exploiting the Heterogeneity of Class Distributions in Exemplar-Free Continual "
        "Learning. NeurIPS 2023"
    )
    settings_type = FecamSettings
    settings: FecamSettings
    choices: ClassVar[dict[str, str]] = {"shrinkage": "shrinkages", "share": "shares"}

    def _empty(self, size: int) -> ClassMoments:
        return ClassMoments.empty(size, self.device)

    def _points(self, vectors: torch.Tensor) -> torch.Tensor:
        return tukey(vectors, self.settings.power)

    def _candidates(self) -> list[Choice]:
        candidates = super()._candidates()
        if self.settings.calibrated:
            return candidates
        return [{**each, "share": 0.0} for each in candidates if each["share"] == candidates[0]["share"]]

    def _head(self, statistics: ClassMoments, inputs: NodeTables, many: int, choice: Choice) -> Tensors:  # noqa: ARG002
        means, covariances = statistics.means(), statistics.covariances()
        weights = similarity_weights(means, many, self.settings.temperature, statistics.counts)
        if self.settings.calibrated:
            lent = torch.einsum("cb,bij->cij", weights, covariances[:many])
            covariances = torch.cat([covariances[:many], covariances[many:] + lent])
        matrices = correlations(shrunk(covariances, choice["shrinkage"], self.settings.off_diagonal))
        factors, failed = torch.linalg.cholesky_ex(matrices)
        if bool(failed.any()):
            raise DivergenceError(
                f"a class covariance with shrinkage {choice['shrinkage']} cannot be inverted: use a larger shrinkage."
            )
        identity = torch.eye(matrices.shape[1], dtype=matrices.dtype, device=matrices.device)
        inverse = torch.linalg.solve_triangular(factors, identity.expand_as(factors), upper=False)
        places = torch.einsum("cij,cj->ci", inverse, calibrated_prototypes(means, weights, choice["share"]))
        maps = inverse.permute(2, 0, 1).flatten(1).float()
        return {"maps": maps, "places": places.float(), "power": torch.tensor(self.settings.power)}

    @staticmethod
    def answers(vectors: torch.Tensor, head: Tensors) -> torch.Tensor:
        """Compute (m, C) negative distances, with N(S_c) = K_c K_cᵀ.

        The head has ``maps``, the (D, C·D) matrices K_c⁻ᵀ side by side, ``places``, (C, D) K_c⁻¹ p_c, and ``power``, κ.
        """
        mapped = tukey(vectors, float(head["power"])) @ head["maps"]  # K_c⁻¹x for all classes at once
        return -((mapped.unflatten(1, head["places"].shape) - head["places"]) ** 2).sum(dim=2)


def tukey(vectors: torch.Tensor, power: float) -> torch.Tensor:
    """Compute (r, D) unit( sign(z)|z|^κ )."""
    return unit_rows(vectors.sign() * vectors.abs() ** power)


def shrunk(covariances: torch.Tensor, diagonal: float, off_diagonal: float = 0.0) -> torch.Tensor:
    """Compute (C, D, D) Σ + γ d I + γ₂ o (1 − I), with d and o the means on and off the diagonal; I if Σ is zero."""
    size = covariances.shape[1]
    identity = torch.eye(size, dtype=covariances.dtype, device=covariances.device)
    on = covariances.diagonal(dim1=1, dim2=2).mean(dim=1)
    off = (covariances.sum(dim=(1, 2)) - size * on) / max(1, size * (size - 1))
    shrunk_matrices = (
        covariances + diagonal * on[:, None, None] * identity + off_diagonal * off[:, None, None] * (1 - identity)
    )
    return torch.where((on > 0)[:, None, None], shrunk_matrices, identity)


def correlations(matrices: torch.Tensor) -> torch.Tensor:
    """Compute (C, D, D) correlation matrices S_ij / √(S_ii S_jj)."""
    roots = matrices.diagonal(dim1=1, dim2=2).rsqrt()
    return matrices * roots[:, :, None] * roots[:, None]
