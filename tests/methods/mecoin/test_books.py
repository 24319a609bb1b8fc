"""The fixed side of Mecoin's memory against plain loops."""

import math

import numpy as np
import pytest
import torch

from graphfcl.methods.mecoin import memory as module
from graphfcl.methods.mecoin.memory import Books, FixedBlock, MecoinSettings

SIZE = 10
SETTINGS = MecoinSettings(size=SIZE, books=5, keys=7, key_size=6)


def made() -> Books:
    books = Books(SIZE, SETTINGS, torch.Generator().manual_seed(0))
    books.draw_keys(torch.randn(40, SIZE, generator=torch.Generator().manual_seed(1)), torch.Generator().manual_seed(2))
    return books


def points_of(count: int = 12) -> torch.Tensor:
    return torch.randn(count, SIZE, generator=torch.Generator().manual_seed(3))


def normed(row: np.ndarray) -> np.ndarray:
    return (row - row.mean()) / np.sqrt(row.var() + 1e-5)


def block_by_loop(block: FixedBlock, rows: np.ndarray) -> np.ndarray:
    """(r, w) rows that attend to each other by two heads, or each to itself alone."""
    weight = {name: value.detach().double().numpy() for name, value in block.state_dict().items()}

    def linear(name: str, row: np.ndarray) -> np.ndarray:
        return row @ weight[f"{name}.weight"] + weight[f"{name}.bias"]

    first = [normed(row) for row in rows]
    found = []
    for row, own in zip(rows, first, strict=True):
        attended = linear("value", own)
        if block.across:
            half = own.size // 2
            attended = np.zeros(own.size)
            for part in (slice(0, half), slice(half, None)):
                query = linear("query", own)[part]
                strength = np.exp([query @ linear("key", other)[part] / math.sqrt(half) for other in first])
                for share, other in zip(strength / strength.sum(), first, strict=True):
                    attended[part] += share * linear("value", other)[part]
        row = row + linear("output", attended)
        hidden = linear("inner", normed(row))
        hidden = hidden * np.array([0.5 * (1 + math.erf(each / math.sqrt(2))) for each in hidden])
        found.append(row + linear("outer", hidden))
    return np.array(found)


def codes_by_loop(books: Books, point: np.ndarray) -> np.ndarray:
    summary = block_by_loop(books.own, point[None])[0] @ books.summary.weight.double().numpy()
    directions = books.directions.double().numpy()
    rows = [np.concatenate([[summary[b]], point @ directions[:, b]]) for b in range(5)]
    return block_by_loop(books.across, np.array(rows))


def test_codes_and_nearest_keys_are_those_of_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    books, points = made(), points_of()
    codes = books.codes(points).numpy()
    np.testing.assert_allclose(np.linalg.norm(books.directions.numpy(), axis=0), 1, rtol=1e-5)
    monkeypatch.setattr(module, "CHUNK", 5 * 10 * 3)  # three nodes at a time
    places = books.look_up(points).numpy()
    for node, point in enumerate(points.double().numpy()):
        wanted = codes_by_loop(books, point)
        np.testing.assert_allclose(codes[node], wanted, atol=1e-4)
        for b in range(5):
            apart = [((wanted[b] - key) ** 2).sum() for key in books.keys[b].double().numpy()]
            assert places[node, b] == 7 * b + int(np.argmin(apart))


def test_a_node_is_looked_up_the_same_whoever_else_is() -> None:
    """Attention over the nodes of a batch, as released, would change it."""
    books, points = made(), points_of()
    together = books.look_up(points)
    for rows in ([4], [7, 2], list(range(11, -1, -1))):
        assert torch.equal(books.look_up(points[rows]), together[rows])


def test_no_tensor_grows_with_the_square_of_the_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 1000)
    books, largest = made(), [0]
    real = torch.baddbmm

    def watched(first: torch.Tensor, second: torch.Tensor, third: torch.Tensor, *, alpha: float) -> torch.Tensor:
        found = real(first, second, third, alpha=alpha)
        largest[0] = max(largest[0], found.numel())
        return found

    monkeypatch.setattr(torch, "baddbmm", watched)
    books.look_up(points_of(500))
    assert 0 < largest[0] <= 1000


def test_keys_are_codes_of_the_points_and_differ_from_book_to_book() -> None:
    books = Books(SIZE, SETTINGS, torch.Generator().manual_seed(0))
    points = points_of(9)
    books.draw_keys(points, torch.Generator().manual_seed(2))
    codes, chosen = books.codes(points), []
    for b in range(5):
        apart = torch.cdist(books.keys[b].double(), codes[:, b].double())
        assert float(apart.min(dim=1).values.max()) < 1e-5
        chosen.append(frozenset(apart.argmin(dim=1).tolist()))
        assert len(chosen[-1]) == 7
    assert len(set(chosen)) > 1
    books.draw_keys(points[:3], torch.Generator().manual_seed(2))  # fewer points than keys
    assert books.keys.shape == (5, 7, 6)


def test_noise_spreads_a_node_over_several_keys_and_nothing_else_does() -> None:
    books, points = made(), points_of()
    generator = torch.Generator().manual_seed(0)
    noisy = torch.stack([books.look_up(points, generator) for _ in range(8)])
    assert (noisy != noisy[0]).any()
    assert torch.equal(books.look_up(points), books.look_up(points))


def test_nothing_of_it_can_be_trained() -> None:
    books = made()
    assert not any(parameter.requires_grad for parameter in books.parameters())
