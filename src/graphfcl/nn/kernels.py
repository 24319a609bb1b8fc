"""The product of a sparse and a dense matrix, by the kernel that is fastest on this machine.

``@`` is the fastest where torch has MKL and few threads, and several times slower than the others where it has no MKL
(ARM). How the others compare, and all of them with many threads, depends on the width of the dense matrix: they are
timed on the leading rows of the first large matrix of each width, which takes some tens of milliseconds.

A timing differs from process to process, results must not: only kernels that agree to the last bit with the build's
standard kernel take part. All of them add up a row in the order of its entries, whatever the number of threads; they
differ in whether they round between multiplication and addition, which depends on build and width.
"""

import threading
import time
from collections.abc import Callable, Mapping

import numpy as np
import torch
from scipy import sparse

LARGE = 4_000_000  # multiplications of a product that is worth a choice
TIMED = 4_000_000  # multiplications of the product that is timed; with fewer, starting threads is what is timed
ROUNDS = 5
MKL_THREADS = 2  # up to which MKL is the fastest at every width; on a busy machine a timing would say otherwise
CLEARLY = 0.75  # of the standard kernel's time that another one may take to replace it

TALL = 4  # rows for each column from which the rows of a transposed product stay in the cache while others are read
SCATTERING_THREADS = 2  # up to which a scattered product is the fastest

Kernel = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def _scipy_product(matrix: torch.Tensor, dense: torch.Tensor) -> torch.Tensor:
    """One thread."""
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
    """(n, k): a CSR tensor (n, m) times (m, k), not differentiable."""
    if matrix.device.type != "cpu":
        return matrix @ dense
    return KERNELS[kernel_for(matrix, dense)](matrix, dense)


def kernel_for(matrix: torch.Tensor, dense: torch.Tensor) -> str:
    """The name of the kernel for a product on a CPU; the first large product of a width makes the choice."""
    case = (dense.dtype, dense.shape[1], torch.get_num_threads())
    if case in _chosen:
        return _chosen[case]
    known = standard_kernel() == "csr" and torch.get_num_threads() <= MKL_THREADS
    if known or matrix.col_indices().numel() * dense.shape[1] < LARGE:
        return standard_kernel()
    _chosen[case] = fastest(seconds_of_kernels(leading_rows(matrix, dense.shape[1]), dense))
    return _chosen[case]


def standard_kernel() -> str:
    """The kernel of a build unless another one gives the same bits faster."""
    return "csr" if torch.backends.mkl.is_available() else "reduce"


def leading_rows(matrix: torch.Tensor, width: int) -> torch.Tensor:
    """So many rows that they are quickly multiplied; at least one."""
    starts = matrix.crow_indices()
    count = max(1, int(torch.searchsorted(starts, TIMED // width, right=True)) - 1)
    stop = int(starts[count])
    parts = (starts[: count + 1], matrix.col_indices()[:stop], matrix.values()[:stop])
    return torch.sparse_csr_tensor(*parts, size=(count, matrix.shape[1]), check_invariants=False)


def seconds_of_kernels(matrix: torch.Tensor, dense: torch.Tensor) -> dict[str, float]:
    """The shortest time of each kernel whose product equals that of the standard kernel, which comes first."""
    expected = KERNELS[standard_kernel()](matrix, dense)
    names = [standard_kernel(), *(name for name in KERNELS if name != standard_kernel())]
    seconds = {name: float("inf") for name in names if torch.equal(KERNELS[name](matrix, dense), expected)}
    for _ in range(ROUNDS):  # in turn: what disturbs one disturbs all
        for name in seconds:
            start = time.perf_counter()
            KERNELS[name](matrix, dense)
            seconds[name] = min(seconds[name], time.perf_counter() - start)
    return seconds


def fastest(seconds: Mapping[str, float]) -> str:
    """The first kernel, unless another one is clearly faster."""
    first, best = next(iter(seconds)), min(seconds, key=seconds.__getitem__)
    return best if seconds[best] < CLEARLY * seconds[first] else first


def scatters(matrix: sparse.csr_array, width: int) -> bool:
    """Whether :func:`scattered_product` is faster for a matrix than a product with its transpose of this width.

    The transpose reads rows of a large dense matrix in any order. Scattering reads them in order and writes, in any
    order, to a result that fits in the cache if there are few columns. With more threads the transpose wins.
    """
    large = matrix.nnz * width >= LARGE
    return large and matrix.shape[0] >= TALL * matrix.shape[1] and torch.get_num_threads() <= SCATTERING_THREADS


def scattered_product(matrix: sparse.csr_array, dense: torch.Tensor) -> torch.Tensor:
    """(m, k): Mᵀ·dense on a CPU, row by row of M, without its transpose. Large ones take two threads, half of k each.

    A column is computed the same way by either thread.
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
