"""Products of sparse and dense matrices: every kernel against dense ones, and how a kernel is chosen."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from graphfcl.nn import SparseMatrix, kernels

CPU = torch.device("cpu")
ALL = tuple(kernels.KERNELS)


@pytest.fixture(autouse=True)
def nothing_chosen(monkeypatch: pytest.MonkeyPatch) -> dict[object, str]:
    chosen: dict[object, str] = {}
    monkeypatch.setattr(kernels, "_chosen", chosen)
    return chosen


def random_matrix(seed: int, rows: int, columns: int, density: float) -> sparse.csr_array:
    """Some rows and columns are empty."""
    random = np.random.default_rng(seed)
    values = random.standard_normal((rows, columns)).astype(np.float32) * (random.random((rows, columns)) < density)
    values[random.random(rows) < 0.2] = 0
    values[:, random.random(columns) < 0.2] = 0
    return sparse.csr_array(values)


def large_matrix() -> torch.Tensor:
    return SparseMatrix(random_matrix(0, 2_000, 500, 0.5), CPU).tensor


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10_000),
    st.integers(1, 30),
    st.integers(1, 30),
    st.sampled_from([1, 3, 4, 16, 17, 32, 33]),
    st.sampled_from([0.0, 0.05, 0.5, 1.0]),
    st.sampled_from([torch.float32, torch.float64]),
    st.booleans(),
)
@pytest.mark.parametrize("kernel", ALL)
def test_products_and_two_derivatives_are_those_of_a_dense_matrix(
    kernel: str, seed: int, rows: int, columns: int, width: int, density: float, kind: torch.dtype, reused: bool
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(kernels, "standard_kernel", lambda: kernel)
        host = random_matrix(seed, rows, columns, density)
        matrix, dense_matrix = SparseMatrix(host, CPU, reused=reused), torch.from_numpy(host.toarray()).to(kind)
        generator = torch.Generator().manual_seed(seed)
        start = torch.randn(columns, width, generator=generator, dtype=kind)
        direction = torch.randn(columns, width, generator=generator, dtype=kind)
        results = []
        for held in (matrix, dense_matrix):
            value = start.clone().requires_grad_()
            output = held @ value
            (slope,) = torch.autograd.grad((output**3).sum(), value, create_graph=True)
            (second,) = torch.autograd.grad((slope * direction).sum(), value)
            results.append((output.detach(), slope.detach(), second))
        for found, expected in zip(*results, strict=True):
            assert found.dtype == kind
            tolerance = 1e-10 if kind == torch.float64 else 1e-4
            scale = max(1.0, float(expected.abs().max()))
            torch.testing.assert_close(found / scale, expected / scale, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kernel", ALL)
def test_a_kernel_gives_the_same_bits_with_any_number_of_threads_and_any_layout(kernel: str) -> None:
    matrix, dense = large_matrix(), torch.randn(500, 32, generator=torch.Generator().manual_seed(0))
    run = kernels.KERNELS[kernel]
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = run(matrix, dense)
        torch.set_num_threads(2)
        assert torch.equal(run(matrix, dense), alone)
    finally:
        torch.set_num_threads(before)
    torch.testing.assert_close(run(matrix, dense.T.contiguous().T), alone)


def test_the_kernel_of_a_build_without_mkl_is_not_the_csr_product(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix, dense = large_matrix(), torch.randn(500, 3)
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: False)
    assert kernels.kernel_for(matrix, dense) == "reduce"
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: True)
    assert kernels.kernel_for(matrix, dense) == "csr"


def test_a_large_product_chooses_once_for_its_type_width_and_threads(
    monkeypatch: pytest.MonkeyPatch, nothing_chosen: dict[object, str]
) -> None:
    asked: list[tuple[int, ...]] = []

    def seconds(matrix: torch.Tensor, dense: torch.Tensor) -> dict[str, float]:
        asked.append((*matrix.shape, dense.shape[1]))
        return {"csr": 3.0, "scipy": 1.0}

    monkeypatch.setattr(kernels, "seconds_of_kernels", seconds)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    monkeypatch.setattr(kernels, "LARGE", 3_000_000)
    monkeypatch.setattr(kernels, "TIMED", 100_000)
    matrix = large_matrix()
    narrow, wide = torch.randn(500, 2), torch.randn(500, 32)
    assert kernels.kernel_for(matrix, narrow) == kernels.standard_kernel()
    assert asked == []
    for _ in range(3):
        assert kernels.kernel_for(matrix, wide) == "scipy"
    assert len(asked) == 1
    assert asked[0][0] < 100, "only the leading rows are timed"
    kernels.kernel_for(matrix, wide.double())
    assert len(asked) == len(nothing_chosen) == 2
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: True)
    assert kernels.kernel_for(matrix, wide) == "csr"
    assert len(asked) == 2, "MKL with few threads needs no timing"
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: False)
    assert kernels.kernel_for(matrix, wide) == "scipy"


def test_only_kernels_with_the_same_bits_take_part(monkeypatch: pytest.MonkeyPatch) -> None:
    standard = kernels.standard_kernel()
    exact = kernels.KERNELS[standard]

    def other(matrix: torch.Tensor, dense: torch.Tensor) -> torch.Tensor:
        return exact(matrix, dense) * (1 + 2**-20)

    monkeypatch.setattr(kernels, "KERNELS", {"other": other, "equal": exact, standard: exact})
    seconds = kernels.seconds_of_kernels(large_matrix(), torch.randn(500, 32))
    assert list(seconds) == [standard, "equal"]
    assert all(0 < value < 10 for value in seconds.values())


def test_another_kernel_replaces_the_standard_one_if_it_is_clearly_faster() -> None:
    assert kernels.fastest({"csr": 1.0, "reduce": 0.9, "scipy": 2.0}) == "csr"
    assert kernels.fastest({"csr": 1.0, "reduce": 0.9, "scipy": 0.5}) == "scipy"
    assert kernels.fastest({"reduce": 1.0}) == "reduce"


@pytest.mark.parametrize("counts", [[0, 0, 5], [40], [3, 4, 0, 2]])
def test_leading_rows_are_the_first_ones(counts: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "TIMED", 20)
    values = np.zeros((len(counts), 40), dtype=np.float32)
    for row, count in enumerate(counts):
        values[row, :count] = 1 + row
    part = kernels.leading_rows(SparseMatrix(sparse.csr_array(values), CPU).tensor, 3)
    assert part.shape[0] >= 1
    np.testing.assert_array_equal(part.to_dense().numpy(), values[: part.shape[0]])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("width", [1, 5, 32])
@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_a_scattered_product_is_that_of_the_transpose_and_of_one_thread(
    threads: int, width: int, kind: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "LARGE", 1)
    host = random_matrix(1, 200, 20, 0.2)
    dense = torch.randn(200, width, generator=torch.Generator().manual_seed(0), dtype=kind)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        assert kernels.scatters(host, width)
        assert not kernels.scatters(sparse.csr_array(host.T), width)
        found = kernels.scattered_product(host, dense)
    finally:
        torch.set_num_threads(before)
    assert found.dtype == kind
    torch.testing.assert_close(found, torch.from_numpy(host.toarray().T).to(kind) @ dense)
    assert torch.equal(found, torch.from_numpy(host.T @ dense.numpy()))


def test_small_products_and_many_threads_take_the_transpose(monkeypatch: pytest.MonkeyPatch) -> None:
    host = random_matrix(1, 200, 20, 0.2)
    assert not kernels.scatters(host, 32)
    monkeypatch.setattr(kernels, "LARGE", 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    assert not kernels.scatters(host, 32)
