"""The losses of Geometer that are not a cross-entropy. Distances are squared: δ(z, p) = ‖z − p‖²."""

import torch
from torch import nn

from graphfcl.methods.shared.prototype_network import squared_distances


def uniformity(prototypes: torch.Tensor) -> torch.Tensor:
    """L_U = mean_k max(0, max_{j≠k} cos(p_k − p̄, p_j − p̄)) of (classes, h) prototypes.

    Two classes lie opposite to each other as seen from their mean: L_U is 0 and teaches nothing. So is it with one.
    """
    directions = nn.functional.normalize(prototypes - prototypes.mean(dim=0), dim=1)
    cosines = directions @ directions.T
    others = cosines.masked_fill(torch.eye(len(cosines), dtype=torch.bool, device=cosines.device), 0.0)
    return others.max(dim=1).values.mean()  # the 0 of the diagonal is the hinge


def separability(new: torch.Tensor, old: torch.Tensor) -> torch.Tensor:
    """L_S = mean_{new k} exp(−min_{old j} ‖p_k − p_j‖²); 0 without a new class."""
    if not len(new) or not len(old):
        return new.sum() * 0
    nearest = squared_distances(new, old).min(dim=1).values
    return torch.exp(-nearest.clamp(min=0)).mean()


def memorability(student: torch.Tensor, teacher: torch.Tensor, direction: str) -> torch.Tensor:
    """L_M = mean_{q, j} π_qj (log π_qj − log τ_qj), π = softmax_j(±δ_student/2), τ the same of the teacher.

    student, teacher: (q, old classes) distances. direction: ``far`` takes plus, as released, and keeps which classes a
    query is far from; ``near`` takes minus. In logarithms: as a quotient of two softmax it is NaN once distances differ
    by some hundreds.
    """
    sign = 0.5 if direction == "far" else -0.5
    log_student = torch.log_softmax(sign * student, dim=1)
    log_teacher = torch.log_softmax(sign * teacher, dim=1)
    return (log_student.exp() * (log_student - log_teacher)).mean()
