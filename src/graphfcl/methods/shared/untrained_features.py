"""Features computed without labels: unit-length rows, a basis of singular vectors, and propagated features."""

import hashlib
from collections.abc import Callable

import numpy as np
import torch
from scipy import sparse

from graphfcl.graph.views import Features
from graphfcl.graph.visible import VisibleGraph
from graphfcl.nn import GcnRows, GraphInputs, tensor_of
from graphfcl.nn.matrices import SparseMatrix

AGGREGATE_FIRST_UP_TO = 256  # up to this many rows, features are propagated before they are projected
ITERATIONS = 4  # subspace iterations
LONGEST = 10.0  # rows that are not normalised are cut at this multiple of the usual length of a standardised row
WIDEST = 16_384  # maximum number of feature columns; more are reduced by a seeded sign hash


def leading_vectors(
    inputs: GraphInputs, rank: int, seed: int, *, exact: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute the leading right singular vectors of the features by randomised subspace iteration.

    Halko, Martinsson, Tropp 2011, on the feature side, which is smaller than the node side. If there are at most
    ``rank`` features, the result is the identity.

    Args:
        inputs: The graph on its device.
        rank: Maximum number of vectors k.
        seed: Seed of the start of the iteration.
        exact: Whether to compute in 64 bits. In 32 bits, vectors of nearly equal singular values and the rounding to 8
            bits depend on the order of nodes.

    Returns:
        (d, k) vectors in 8 bits, and the (k,) scales of the columns.
    """
    features = inputs.visible.features
    width = features.shape[1]
    rank = min(rank, *features.shape)
    if width <= rank:
        return in_steps(torch.eye(rank))
    if inputs.device.type == "cuda" and not exact:
        start = _start_of_span(width, rank, seed)
        return tuple(part.cpu() for part in in_steps(_iterated_on_device(inputs, start, rank)))  # type: ignore[return-value]

    def product(span: np.ndarray) -> np.ndarray:
        return np.asarray(features.T @ (features @ span))

    def gram(span: np.ndarray) -> np.ndarray:
        seen = np.asarray(features @ span)
        return seen.T @ seen

    return leading_vectors_from(features.shape, product, gram, rank, seed, exact=exact)


def leading_vectors_from(
    shape: tuple[int, int],
    product: Callable[[np.ndarray], np.ndarray],
    gram: Callable[[np.ndarray], np.ndarray],
    rank: int,
    seed: int,
    *,
    exact: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute :func:`leading_vectors` of a matrix X given by two functions.

    ``product`` maps S to Xᵀ(X S), and ``gram`` maps S to (X S)ᵀ(X S). Results have the number type of S.
    """
    rank = min(rank, *shape)
    if shape[1] <= rank:
        return in_steps(torch.eye(rank))
    span = _start_of_span(shape[1], rank, seed).astype(np.float64 if exact else np.float32)
    for _ in range(ITERATIONS):
        span, _ = np.linalg.qr(product(span))
    _, vectors = np.linalg.eigh(gram(span))
    return in_steps(_with_signs(torch.from_numpy(np.ascontiguousarray(span @ vectors[:, ::-1][:, :rank]))))


def _with_signs(vectors: torch.Tensor) -> torch.Tensor:
    """Fix the signs of (d, k) columns so that the entry of largest magnitude is positive.

    The sign of a singular vector is arbitrary and depends on the order of nodes by rounding. An encoder that reads XB
    would be trained differently for another sign.
    """
    largest = vectors.abs().argmax(dim=0, keepdim=True)
    return vectors * vectors.gather(0, largest).sign()


def _start_of_span(width: int, rank: int, seed: int) -> np.ndarray:
    random = np.random.default_rng([seed, 3])
    return random.standard_normal((width, min(rank + 20, width))).astype(np.float32)


def _iterated_on_device(inputs: GraphInputs, start: np.ndarray, rank: int) -> torch.Tensor:
    """Run the subspace iteration on a GPU."""
    features = inputs.visible.features
    host, turned = (
        tensor_of(part, inputs.device)
        if isinstance(part, np.ndarray)
        else SparseMatrix(sparse.csr_array(part), inputs.device).tensor
        for part in (features, features.T)
    )
    span = torch.from_numpy(start).to(inputs.device)
    for _ in range(ITERATIONS):
        span, _ = torch.linalg.qr(turned @ (host @ span))
    seen = host @ span
    _, vectors = torch.linalg.eigh(seen.T @ seen)
    return _with_signs((span @ vectors.flip(1)[:, :rank]).contiguous())


def in_steps(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Quantise a matrix to 8 bits: (d, k) steps and (k,) scales with steps · scales ≈ values."""
    scales = values.abs().amax(dim=0).clamp(min=1e-12) / 127
    return (values / scales).round().to(torch.int8), scales.float()


def unit_rows(values: torch.Tensor) -> torch.Tensor:
    """Scale rows to length 1; a zero row stays zero."""
    return values / values.norm(dim=1, keepdim=True).clamp(min=1e-8)


def upper_triangle(upper: torch.Tensor) -> torch.Tensor:
    """Unpack (…, D(D + 1)/2) entries into the upper half of (…, D, D) matrices with zeros below."""
    size = int((2 * upper.shape[-1] + 0.25) ** 0.5)
    rows, columns = torch.triu_indices(size, size, device=upper.device)
    whole = upper.new_zeros(*upper.shape[:-1], size, size)
    whole[..., rows, columns] = upper
    return whole


def symmetric(upper: torch.Tensor) -> torch.Tensor:
    """Unpack (…, D(D + 1)/2) entries of the upper half into symmetric (…, D, D) matrices."""
    whole = upper_triangle(upper)
    return whole + whole.triu(1).mT


def around_rows(
    visible: VisibleGraph, rows: np.ndarray, hops: int, basis: torch.Tensor, near: GcnRows | None = None
) -> torch.Tensor:
    """Compute (r, k) rows of Â…ÂXB from the nodes within ``hops`` hops.

    For a few rows, features are propagated first, ((Â…Â)[rows] X) B. A session reads thousands of nodes around ten
    supports, and a row of X has a few words where a row of XB has hundreds of numbers. ``near`` is the encoder's input
    for the same rows, if it is available; it already contains the features within one hop.
    """
    if rows.size <= AGGREGATE_FIRST_UP_TO:
        added: Features
        if hops == 2 and isinstance(near, GcnRows) and near.chosen is None and isinstance(near.inputs, SparseMatrix):
            added = near.gather.host @ near.inputs.host
        else:
            weights = visible.normalised[rows]
            for _ in range(hops - 1):
                weights = weights @ visible.normalised
            added = weights @ visible.features
        # Dense, because a sum of thousands of rows has most of the columns.
        return torch.from_numpy(added if isinstance(added, np.ndarray) else added.toarray()).to(basis.device) @ basis
    reached = [rows]
    for _ in range(hops):
        reached.append(np.unique(visible.normalised[reached[-1]].indices))
    values = np.asarray(visible.features[reached[-1]] @ basis.cpu().numpy())
    for outer, inner in zip(reached[:0:-1], reached[-2::-1], strict=True):
        values = visible.normalised[inner][:, outer] @ values
    return torch.from_numpy(values).to(basis.device)


def prepare(features: Features, seed: int, *, unit: bool = True) -> Features:
    """Normalise feature rows, and reduce more than ``WIDEST`` columns by a seeded sign hash.

    With ``unit``, rows have length 1. Without it, rows are divided by the square root of their width, and longer rows
    are cut at ``LONGEST``.
    """
    if features.shape[1] == 0:
        return np.ones((features.shape[0], 1), dtype=np.float32)
    if features.shape[1] > WIDEST:
        features = features @ _folding(features.shape[1], seed)
    length = _lengths(features) if unit else np.maximum(np.sqrt(features.shape[1]), _lengths(features) / LONGEST)
    length = np.maximum(length, 1e-8).astype(np.float32)
    if isinstance(features, np.ndarray):
        return (features / length[:, None]).astype(np.float32)
    features = sparse.csr_array(features)
    data = features.data.astype(np.float32) / np.repeat(length, np.diff(features.indptr))
    return sparse.csr_array((data, features.indices, features.indptr), shape=features.shape)


def _lengths(features: Features) -> np.ndarray:
    """Compute the (n,) lengths of the rows."""
    if isinstance(features, np.ndarray):
        return np.linalg.norm(features, axis=1)
    features = sparse.csr_array(features)
    counts = np.diff(features.indptr)
    squares = np.zeros(features.shape[0])
    if features.nnz:
        squares[counts > 0] = np.add.reduceat(features.data.astype(np.float64) ** 2, features.indptr[:-1][counts > 0])
    return np.sqrt(squares)


def _folding(width: int, seed: int) -> sparse.csr_array:
    digest = hashlib.sha256(f"{seed}:{width}".encode()).digest()
    random = np.random.default_rng(int.from_bytes(digest[:8], "little"))
    signs = random.choice(np.array([-1, 1], dtype=np.float32), width)
    return sparse.csr_array((signs, (np.arange(width), random.integers(0, WIDEST, width))), shape=(width, WIDEST))
