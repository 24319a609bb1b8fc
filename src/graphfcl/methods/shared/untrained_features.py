"""What is made of features before any label is seen: rows of unit length, a basis, what lies around a node."""

import hashlib
from collections.abc import Callable

import numpy as np
import torch
from scipy import sparse

from graphfcl.graph.views import Features
from graphfcl.graph.visible import VisibleGraph
from graphfcl.nn import GcnRows, GraphInputs, tensor_of
from graphfcl.nn.matrices import SparseMatrix

AGGREGATE_FIRST_UP_TO = 256  # rows whose surroundings are added up before they are projected
ITERATIONS = 4  # of the subspace
LONGEST = 10.0  # times the usual length of a standardised row at which rows that keep their length are cut
WIDEST = 16_384  # feature columns above which a seeded sign hash folds them together


def leading_vectors(
    inputs: GraphInputs, rank: int, seed: int, *, exact: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """(d, k) the leading right singular vectors of the features in 8 bits and the (k,) scales of its columns.

    Subspace iteration from a seeded start (Halko, Martinsson, Tropp 2011), on the side of the features, which are fewer
    than the nodes. The identity if there are no more features than columns. exact: in 64 bits. Vectors of nearly equal
    singular values, and the steps of 8 bits, else follow from how sums were rounded, and so from the order of nodes.
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
    """:func:`leading_vectors` of a matrix X of which only products are known: S ↦ Xᵀ(X S) and S ↦ (X S)ᵀ(X S).

    Products have the type of S.
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
    """(d, k) the same columns with the largest number of each positive.

    The sign of a singular vector is arbitrary: it would follow from how sums were rounded, and so from the order of
    nodes, and an encoder that reads XB starts elsewhere for another sign.
    """
    largest = vectors.abs().argmax(dim=0, keepdim=True)
    return vectors * vectors.gather(0, largest).sign()


def _start_of_span(width: int, rank: int, seed: int) -> np.ndarray:
    random = np.random.default_rng([seed, 3])
    return random.standard_normal((width, min(rank + 20, width))).astype(np.float32)


def _iterated_on_device(inputs: GraphInputs, start: np.ndarray, rank: int) -> torch.Tensor:
    """The same iteration on a GPU, where a QR of thousands of rows takes milliseconds."""
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
    """A matrix in 8 bits: (d, k) steps and the (k,) scales of its columns; steps · scales is nearly the matrix."""
    scales = values.abs().amax(dim=0).clamp(min=1e-12) / 127
    return (values / scales).round().to(torch.int8), scales.float()


def unit_rows(values: torch.Tensor) -> torch.Tensor:
    """Each row of length 1; a row of zeros stays one."""
    return values / values.norm(dim=1, keepdim=True).clamp(min=1e-8)


def upper_triangle(upper: torch.Tensor) -> torch.Tensor:
    """(…, D, D) with the (…, D(D + 1)/2) entries in its upper half, and zeros below."""
    size = int((2 * upper.shape[-1] + 0.25) ** 0.5)
    rows, columns = torch.triu_indices(size, size, device=upper.device)
    whole = upper.new_zeros(*upper.shape[:-1], size, size)
    whole[..., rows, columns] = upper
    return whole


def symmetric(upper: torch.Tensor) -> torch.Tensor:
    """(…, D, D) from the (…, D(D + 1)/2) entries of its upper half."""
    whole = upper_triangle(upper)
    return whole + whole.triu(1).mT


def around_rows(
    visible: VisibleGraph, rows: np.ndarray, hops: int, basis: torch.Tensor, near: GcnRows | None = None
) -> torch.Tensor:
    """(r, k): some rows of Â…ÂXB; only what lies within so many hops is read.

    For a few rows features are added up first, (Â…Â)[rows]X and then B: a session reads thousands of nodes around ten
    supports, and a row of X is a few words long where a row of XB has hundreds of numbers. near: what the encoder reads
    for the same rows, if it is at hand: it has the features one hop around already.
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
        # Dense: a sum of thousands of rows has most of the columns, and B is then read once.
        return torch.from_numpy(added if isinstance(added, np.ndarray) else added.toarray()).to(basis.device) @ basis
    reached = [rows]
    for _ in range(hops):
        reached.append(np.unique(visible.normalised[reached[-1]].indices))
    values = np.asarray(visible.features[reached[-1]] @ basis.cpu().numpy())
    for outer, inner in zip(reached[:0:-1], reached[-2::-1], strict=True):
        values = visible.normalised[inner][:, outer] @ values
    return torch.from_numpy(values).to(basis.device)


def prepare(features: Features, seed: int, *, unit: bool = True) -> Features:
    """Rows of unit length; more than ``WIDEST`` columns are folded together by a seeded sign hash.

    unit: if false, rows keep their length, in units of the root of their width, and are cut at ``LONGEST`` of them.
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
    """(n,) of the rows."""
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
