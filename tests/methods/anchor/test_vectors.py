"""Tables of blocks: slices and chunks change no number."""

from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from graphfcl import VisibleGraph
from graphfcl.methods.anchor.frame import Blocks, joined, whitened
from graphfcl.methods.blocks.resident import ResidentTables
from graphfcl.methods.shared.untrained_features import prepare
from graphfcl.nn import GraphInputs


def tables_of(*, dense: bool) -> ResidentTables:
    random = np.random.default_rng(0)
    drawn = sparse.random_array((50, 50), density=0.1, random_state=random, dtype=np.float32)
    features = sparse.random_array((50, 30), density=0.3, random_state=random, dtype=np.float32, format="csr")
    whole = 1000 * features.toarray() - 200 if dense else features
    visible = VisibleGraph(np.arange(50), sparse.csr_array(drawn + drawn.T), prepare(whole, 0, unit=not dense))
    return ResidentTables(visible, GraphInputs(visible, torch.device("cpu")))


@pytest.mark.parametrize("dense", [False, True])
def test_a_table_is_what_one_product_makes(dense: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    tables, random = tables_of(dense=dense), torch.Generator().manual_seed(0)
    basis, codes = torch.randn(30, 10, generator=random), torch.randn(50, 4, generator=random)
    for name, value in {"resident.COLUMNS": 3, "resident.BLOCK": 20}.items():
        monkeypatch.setattr(f"graphfcl.methods.blocks.{name}", value)
    monkeypatch.setattr("graphfcl.methods.anchor.frame.ROWS", 7)
    own_table, weights = tables.own(basis), (1.0, 2.0, 0.5)
    blocks = Blocks.of(tables, [own_table, *tables.hops(own_table, (2,)), tables.take(codes)], weights, "<f2")
    table = blocks.table.rows_at(np.arange(50))
    features: Any = tables.visible.features
    hop = tables.visible.normalised.toarray()
    own = np.asarray(features if dense else features.toarray()) @ basis.numpy()
    expected = np.concatenate([own, hop @ hop @ own, codes.numpy()], axis=1)
    assert table.dtype == (torch.float32 if dense else torch.float16)
    np.testing.assert_allclose(table.float(), expected, rtol=2e-3, atol=2e-3)

    frame = blocks.centres()
    np.testing.assert_allclose(torch.cat(list(frame.values())), expected.mean(axis=0), rtol=2e-3, atol=2e-3)
    frame |= {"middle": torch.randn(24, generator=random), "whitening": torch.randn(24, 24, generator=random).triu()}
    whole = whitened(joined(list(table.split([10, 10, 4], dim=1)), frame, weights), frame, "<f2")
    actual = blocks.vectors(frame, last_use=True).rows_at(np.arange(50))
    assert actual.dtype == torch.float16
    np.testing.assert_allclose(actual, whole, atol=1e-3)

    parts, lengths = np.split(expected, [10, 20], axis=1), np.zeros((50, 0))
    for place, block in enumerate(parts):
        centred = block - frame[f"centre.{place}"].numpy()
        lengths = np.hstack([lengths, weights[place] * centred / np.linalg.norm(centred, axis=1, keepdims=True)])
    by_hand = (lengths - frame["middle"].numpy()) @ frame["whitening"].numpy()
    by_hand /= np.linalg.norm(by_hand, axis=1, keepdims=True)
    np.testing.assert_allclose(actual, by_hand, atol=0.02)


def test_numbers_keep_the_length_of_a_row_and_words_do_not() -> None:
    rows = np.array([[3.0, 4.0], [0.3, 0.4], [3e6, 4e6], [0.0, 0.0]], dtype=np.float32)
    np.testing.assert_allclose(np.linalg.norm(prepare(rows, 0), axis=1), [1, 1, 1, 0])
    kept = np.linalg.norm(prepare(rows, 0, unit=False), axis=1)
    np.testing.assert_allclose(kept, [5 / np.sqrt(2), 0.5 / np.sqrt(2), 10, 0], rtol=1e-5)
