"""Multiply a sparse and a dense matrix with the kernel that is fastest on this machine.

With MKL and few threads, torch's ``@`` is the fastest kernel. Without MKL (ARM) it is several times slower than the
others. In all other cases the order depends on the width of the dense matrix. The kernels are therefore timed on the
leading rows of the first large matrix of each width, which takes some tens of milliseconds.

Timings vary between processes, but results must not. Only kernels that give exactly the same bits as the standard
kernel of the build are timed. All kernels sum the entries of a row in order, for any number of threads. They differ in
whether they round between multiplication and addition, which depends on build and width.
"""

import threading
import time
from collections.abc import Callable, Mapping

import numpy as np
import torch
from scipy import sparse

LARGE = 4_000_000  # kernels are compared for products with at least this many multiplications
TIMED = 4_000_000  # multiplications of the timed product; with fewer, starting threads would dominate the time
ROUNDS = 5  # timings of each kernel
MKL_THREADS = 2  # up to this number of threads MKL is always the fastest, even if a timing on a busy machine differs
CLEARLY = 0.75  # another kernel replaces the standard one if it takes less than this share of its time

TALL = 4  # with this many times more rows than columns, the result of a transposed product stays in the cache
SCATTERING_THREADS = 2  # up to this number of threads a scattered product is faster

Kernel = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def _scipy_product(matrix: torch.Tensor, dense: torch.Tensor) -> torch.Tensor:
    """Multiply with scipy, in one thread."""
    return torch.from_numpy(_host(matrix) @ dense.detach().numpy())


def _host(matrix: torch.Tensor) -> sparse.csr_array:
    parts = (matrix.values(), matrix.col_indices(), matrix.crow_indices())
    return sparse.csr_array(tuple(part.numpy() for part in parts), shape=tuple(matrix.shape))


KERNELS: dict[str, Kernel] = {
    "csr": lambda matrix, dense: matrix @ dense,
    "reduce": lambda matrix, dense: torch.sparse.mm(matrix, dense, "sum"),
    "scipy": _scipy_product,
}
_chosen: dict[tuple[torch.dtype, int, int], str] = {}


def sparse_product(matrix: torch.Tensor, dense: torch.Tensor) -> torch.Tensor:
    """Multiply a (n, m) CSR tensor with a (m, k) tensor, without gradients."""
    if matrix.device.type != "cpu":
        return matrix @ dense
    return KERNELS[kernel_for(matrix, dense)](matrix, dense)


def kernel_for(matrix: torch.Tensor, dense: torch.Tensor) -> str:
    """Return the name of the kernel for a product on a CPU, chosen at the first large product of each width."""
    case = (dense.dtype, dense.shape[1], torch.get_num_threads())
    if case in _chosen:
        return _chosen[case]
    mkl_is_fastest = standard_kernel() == "csr" and torch.get_num_threads() <= MKL_THREADS
    if mkl_is_fastest or matrix.col_indices().numel() * dense.shape[1] < LARGE:
        return standard_kernel()
    _chosen[case] = fastest(seconds_of_kernels(leading_rows(matrix, dense.shape[1]), dense))
    return _chosen[case]


def standard_kernel() -> str:
    """Return the default kernel of this build of torch."""
    return "csr" if torch.backends.mkl.is_available() else "reduce"


def leading_rows(matrix: torch.Tensor, width: int) -> torch.Tensor:
    """Return the leading rows, at least one, that give a product of about ``TIMED`` multiplications."""
    starts = matrix.crow_indices()
    count = max(1, int(torch.searchsorted(starts, TIMED // width, right=True)) - 1)
    stop = int(starts[count])
    parts = (starts[: count + 1], matrix.col_indices()[:stop], matrix.values()[:stop])
    return torch.sparse_csr_tensor(*parts, size=(count, matrix.shape[1]), check_invariants=False)


def seconds_of_kernels(matrix: torch.Tensor, dense: torch.Tensor) -> dict[str, float]:
    """Return the shortest time of each kernel that gives the same bits as the standard kernel, which comes first."""
    expected = KERNELS[standard_kernel()](matrix, dense)
    names = [standard_kernel(), *(name for name in KERNELS if name != standard_kernel())]
    seconds = {name: float("inf") for name in names if torch.equal(KERNELS[name](matrix, dense), expected)}
    for _ in range(ROUNDS):  # alternate, so that other load on the machine affects all kernels
        for name in seconds:
            start = time.perf_counter()
            KERNELS[name](matrix, dense)
            seconds[name] = min(seconds[name], time.perf_counter() - start)
    return seconds


def fastest(seconds: Mapping[str, float]) -> str:
    """Return the first kernel, unless another one is clearly faster."""
    first, best = next(iter(seconds)), min(seconds, key=seconds.__getitem__)
    return best if seconds[best] < CLEARLY * seconds[first] else first


def scatters(matrix: sparse.csr_array, width: int) -> bool:
    """Tell whether :func:`scattered_product` is faster than multiplying with the transpose, for this width.

    The transpose reads rows of a large dense matrix in random order. Scattering reads them in order and writes in
    random order to a result that fits into the cache if the matrix has few columns. With more threads the transpose is
    faster.
    """
    large = matrix.nnz * width >= LARGE
    return large and matrix.shape[0] >= TALL * matrix.shape[1] and torch.get_num_threads() <= SCATTERING_THREADS


def scattered_product(matrix: sparse.csr_array, dense: torch.Tensor) -> torch.Tensor:
    """Compute (m, k) Mᵀ·dense on a CPU row by row of M, without transposing M.

    Large products use two threads, each for half of the columns, which does not change the result.
    """
    values, width = dense.detach().numpy(), dense.shape[1]
    if torch.get_num_threads() == 1 or width < 2 or matrix.nnz * width < LARGE:
        return torch.from_numpy(matrix.T @ values)
    output = np.empty((matrix.shape[1], width), dtype=np.result_type(matrix.dtype, values.dtype))

    def compute(columns: slice) -> None:
        output[:, columns] = matrix.T @ np.ascontiguousarray(values[:, columns])

    helper = threading.Thread(target=compute, args=(slice(width // 2),))  # a pool would not survive a fork
    helper.start()
    compute(slice(width // 2, width))
    helper.join()
    return torch.from_numpy(output)
