"""What classes with few labels take from similar classes of session 0 (TEEN, Wang et al. 2023)."""

import torch

from graphfcl.methods.shared.untrained_features import unit_rows


def similarity_weights(means: torch.Tensor, many: int, temperature: float, counts: torch.Tensor) -> torch.Tensor:
    """(C − many, many) w_cb = softmax_b(τ cos(μ_c, μ_b)) of later classes c over the first ``many`` classes b.

    means: (C, D). counts: (C,) labels of each class; one without labels lends nothing.
    """
    units = unit_rows(means)
    logits = temperature * units[many:] @ units[:many].T
    return torch.softmax(logits.masked_fill(counts[None, :many] == 0, -torch.inf), dim=1).nan_to_num()


def calibrated_prototypes(means: torch.Tensor, weights: torch.Tensor, share: float) -> torch.Tensor:
    """(C, D) unit prototypes: p̂_c, and for later classes unit((1 − α) p̂_c + α unit(Σ_b w_cb p̂_b)).

    weights: those of :func:`similarity_weights`. share: α.
    """
    units, many = unit_rows(means), weights.shape[1]
    lent = unit_rows(weights @ units[:many])
    return torch.cat([units[:many], unit_rows((1 - share) * units[many:] + share * lent)])
