"""A mapped file: only what is asked for is read and verified, and damage is found where it is touched."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphfcl.production.store.chunked_file import SHORT, ChunkedFile, write_chunked
from graphfcl.production.store.damage import Damaged
from graphfcl.production.store.id_lookup import IdLookup, lookup_arrays
from graphfcl.production.store.objects import ReadCounter


@pytest.fixture
def path(tmp_path: Path) -> Path:
    rows = np.arange(40_000, dtype=np.float32).reshape(-1, 4)
    write_chunked(tmp_path / "file", {"key": "mine"}, {"rows": rows, "wide": np.ones((3, 70_000)), "none": rows[:0]})
    return tmp_path / "file"


def test_rows_come_back_and_little_is_read(path: Path) -> None:
    counter = ReadCounter()
    file = ChunkedFile(path, counter)
    assert file.values == {"key": "mine"}
    header = counter.read
    np.testing.assert_array_equal(file["rows"].rows(7, 9), np.arange(28, 36, dtype=np.float32).reshape(2, 4))
    assert counter.read == header + SHORT
    file["rows"].rows(7, 9)
    assert counter.read == header + SHORT, "a chunk is verified once"
    np.testing.assert_array_equal(file["wide"].whole(), np.ones((3, 70_000)))
    assert file["none"].whole().shape == (0, 4)
    assert file["rows"].whole().sum() == np.arange(40_000, dtype=np.float32).sum()


def test_damage_hurts_only_who_touches_it(path: Path) -> None:
    content = bytearray(path.read_bytes())
    place = content.find(np.arange(20_000, 20_004, dtype=np.float32).tobytes())
    content[place] ^= 1
    path.write_bytes(content)
    file = ChunkedFile(path, ReadCounter())
    assert file["rows"].rows(0, 1)[0, 1] == 1
    with pytest.raises(Damaged):
        file["rows"].rows(5000, 5001)
    with pytest.raises(Damaged):
        file["rows"].whole()


@pytest.mark.parametrize("keep", [0, 5, 40, 200, -1])
def test_a_file_that_was_cut_off(path: Path, keep: int) -> None:
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(Damaged):
        ChunkedFile(path, ReadCounter())["wide"].whole()


@settings(max_examples=25, deadline=None)
@given(
    st.one_of(
        st.lists(st.text(max_size=8), unique=True, max_size=3000),
        st.lists(st.integers(-(2**63), 2**63 - 1), unique=True, max_size=3000),
    )
)
def test_every_id_is_found_and_no_other(tmp_path_factory: pytest.TempPathFactory, ids: list[str] | list[int]) -> None:
    path = tmp_path_factory.mktemp("lookup") / "file"
    whole = bool(ids) and isinstance(ids[0], int)
    arrays, fence = lookup_arrays(np.array(ids, dtype=np.int64) if whole else [str(text) for text in ids])
    write_chunked(path, {"fence": fence}, arrays)
    lookup = IdLookup(ChunkedFile(path, ReadCounter()), fence)
    assert lookup.find_all(ids) == lookup.find_all([str(each) for each in ids]) == list(range(len(ids)))
    for other in ("nobody at all", 12345, "007", "²", -1):
        known = [str(each) for each in ids]
        assert lookup.find_all([other]) == ([known.index(str(other))] if str(other) in known else None)
        assert str(other) in known or lookup.find_all([*ids, other]) is None
