"""Ways to multiply sparse matrices on this machine, forwards and backwards, for an episode and for the whole graph.

The matrices are those of ``debian``: Â·X of an episode's neighbourhood (used once) and of the whole graph (used again
and again). Each way is timed for Y = M·W and dL/dW = Mᵀ·G with 32 columns; for the episode its preparation counts too.
"""

from collections.abc import Callable

import numpy as np
import torch
from scipy import sparse

from benchmarks.episode import Bench
from benchmarks.timing import best_seconds
from graphfcl.datasets import load_dataset
from graphfcl.nn import SparseMatrix
from graphfcl.stream import make_stream

CPU = torch.device("cpu")
COLUMNS = 32


def ways(matrix: sparse.csr_array) -> dict[str, Callable[[], Callable[[], object]]]:
    """Name → a function that prepares the matrix and returns one forward and backward product."""
    weights = torch.randn(matrix.shape[1], COLUMNS, requires_grad=True)
    gradient = torch.randn(matrix.shape[0], COLUMNS)

    def ours(reused: bool) -> Callable[[], Callable[[], object]]:
        def prepare() -> Callable[[], object]:
            held = SparseMatrix(matrix, CPU, reused=reused)
            return lambda: torch.autograd.grad(held @ weights, weights, gradient)

        return prepare

    def torch_csr() -> Callable[[], object]:
        pointers, columns, values = map(torch.from_numpy, (matrix.indptr, matrix.indices, matrix.data))
        held = torch.sparse_csr_tensor(pointers, columns, values, size=matrix.shape)
        return lambda: (held @ weights.detach(), held.t() @ gradient)

    def torch_coo() -> Callable[[], object]:
        coo = matrix.tocoo()
        places = torch.from_numpy(np.stack([coo.row, coo.col]).astype(np.int64))
        held = torch.sparse_coo_tensor(places, torch.from_numpy(coo.data), matrix.shape).coalesce()
        return lambda: torch.autograd.grad(torch.sparse.mm(held, weights), weights, gradient)

    def embedding_bag() -> Callable[[], object]:
        places, starts = (torch.from_numpy(part.astype(np.int64)) for part in (matrix.indices, matrix.indptr[:-1]))
        values = torch.from_numpy(matrix.data)
        bag = torch.nn.functional.embedding_bag
        return lambda: torch.autograd.grad(
            bag(places, weights, starts, mode="sum", per_sample_weights=values), weights, gradient
        )

    def edge_index() -> Callable[[], object]:
        from torch_geometric import EdgeIndex

        coo = matrix.tocoo()
        places = torch.from_numpy(np.stack([coo.row, coo.col]).astype(np.int64))
        held = EdgeIndex(places, sparse_size=matrix.shape, sort_order="row").fill_cache_()
        values = torch.from_numpy(coo.data)
        return lambda: torch.autograd.grad(held.matmul(weights, input_value=values), weights, gradient)

    return {
        "CSR, transpose read by scipy (ours, used once)": ours(reused=False),
        "CSR, transpose kept (ours, reused)": ours(reused=True),
        "torch CSR and its .t()": torch_csr,
        "torch COO": torch_coo,
        "embedding_bag": embedding_bag,
        "PyG EdgeIndex": edge_index,
    }


def main() -> None:
    graph, protocol = load_dataset("debian")
    bench = Bench(make_stream(graph, protocol), "cpu")
    episode = bench.episode
    rows = bench.inputs.visible.rows(np.concatenate([episode.supports, episode.queries]))
    once = bench.inputs.gcn_rows(rows).inputs
    whole = bench.inputs.all_gcn_rows.inputs
    assert isinstance(once, SparseMatrix)
    assert isinstance(whole, SparseMatrix)
    print(f"{'sparse product, forward and backward, ms':<50} {'episode':>10} {'whole graph':>12}")
    for (name, for_episode), for_whole in zip(ways(once.host).items(), ways(whole.host).values(), strict=True):
        episode_ms = 1e3 * best_seconds(lambda prepare=for_episode: prepare()())  # type: ignore[misc]
        whole_ms = 1e3 * best_seconds(for_whole())
        print(f"{name:<50} {episode_ms:10.2f} {whole_ms:12.2f}", flush=True)
