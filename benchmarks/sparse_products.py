"""The kernels that multiply sparse with dense matrices on this machine, and which of them is chosen.

The matrices are those of ``debian``: Â, Â·X and its transpose of the whole graph, which are used again and again, and
Â·X of an episode's neighbourhood, which is used once. ``python -m benchmarks sparse_products [--threads 1 2]``.
"""

import argparse
from collections.abc import Sequence

import numpy as np
import torch

from benchmarks.episode import Bench
from benchmarks.timing import best_seconds_of, report
from graphfcl.datasets import load_dataset
from graphfcl.nn import SparseMatrix
from graphfcl.nn.kernels import KERNELS, kernel_for, scattered_product, scatters
from graphfcl.runtime.cores import usable_cores
from graphfcl.stream import make_stream

CPU = torch.device("cpu")
WIDTHS = (16, 32, 64, 128)
REPEATS = 9


def products(name: str, matrix: SparseMatrix, width: int, threads: int) -> None:
    """Every kernel for Y = M·H."""
    dense = torch.randn(matrix.shape[1], width)
    kernel_for(matrix.tensor, dense)  # the choice is not timed
    chosen = kernel_for(matrix.tensor, dense)
    runs = {each: lambda each=each: KERNELS[each](matrix.tensor, dense) for each in KERNELS}
    seconds = best_seconds_of(runs, REPEATS)
    _report(name, width, threads, seconds, chosen)


def gradients(name: str, matrix: SparseMatrix, width: int, threads: int) -> None:
    """Both ways to dL/dW = Mᵀ·dL/dY; a matrix that is used once has no transpose yet."""
    slope = torch.randn(matrix.shape[0], width)

    def with_transpose() -> torch.Tensor:
        kept = matrix.transposed if matrix.reused else SparseMatrix(matrix.host.T.tocsr(), CPU)
        return kept.product(slope)

    seconds = best_seconds_of(
        {"scattered": lambda: scattered_product(matrix.host, slope), "transpose": with_transpose}, REPEATS
    )
    chosen = "scattered" if not matrix.reused or scatters(matrix.host, width) else "transpose"
    _report(f"{name} slope", width, threads, seconds, chosen)


def _report(name: str, width: int, threads: int, seconds: dict[str, float], chosen: str) -> None:
    """The last figure is the time of the chosen way, over that of the fastest."""
    all_ms = "  ".join(f"{each} {1e3 * value:6.2f}" for each, value in seconds.items())
    ratio = seconds[chosen] / min(seconds.values())
    report(f"{name:<13} {width:3} columns {threads} threads  {all_ms} ms, {chosen}", ratio, "x", "-", True)


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks sparse_products", description=__doc__)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2][: usable_cores()])
    threads_to_time = parser.parse_args(list(arguments)).threads
    graph, protocol = load_dataset("debian")
    bench = Bench(make_stream(graph, protocol), "cpu")
    rows = bench.inputs.visible.rows(np.concatenate([bench.episode.supports, bench.episode.queries]))
    whole, once = bench.inputs.all_gcn_rows.inputs, bench.inputs.gcn_rows(rows).inputs
    assert isinstance(whole, SparseMatrix)
    assert isinstance(once, SparseMatrix)
    matrices = {"Â": bench.inputs.adjacency, "ÂX": whole, "(ÂX)ᵀ": whole.transposed, "episode": once}
    before = torch.get_num_threads()
    for threads in threads_to_time:
        torch.set_num_threads(threads)
        for width in WIDTHS:
            for name, matrix in matrices.items():
                products(name, matrix, width, threads)
            gradients("ÂX", whole, width, threads)
            gradients("episode", once, width, threads)
    torch.set_num_threads(before)
