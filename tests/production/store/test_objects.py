"""Objects and arrays: what is written comes back, what did not change is written once, and damage is found."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from graphfcl.production.store.block_arrays import DTYPES, BlockArrays, block_names
from graphfcl.production.store.damage import Damaged
from graphfcl.production.store.ids import read_ids, write_ids
from graphfcl.production.store.objects import MemoryObjects, ObjectFolder, ReadCounter, packed, unpacked


@given(st.binary(max_size=5000), st.integers(1, 50))
def test_a_file_holds_its_content_and_never_becomes_more(content: bytes, times: int) -> None:
    content = content * times
    file = packed(content)
    assert len(file) <= len(content) + 1
    assert unpacked(file, len(content)) == content
    assert unpacked(file, len(content) + 1) is None
    if content:
        assert unpacked(file, len(content) - 1) is None


def test_a_file_that_was_cut_is_written_again(tmp_path: Path) -> None:
    objects, content = ObjectFolder(tmp_path, ReadCounter()), bytes(range(256)) * 40
    name = objects.put(content)
    assert objects.is_there(name, len(content))
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:-1])
    assert not objects.is_there(name, len(content))
    assert objects.put(content) == name
    assert objects.get(name, len(content)) == content
    (tmp_path / name).write_bytes(b"0" + content)
    assert objects.is_there(name, len(content)), "the same content in a file of another length"


@settings(max_examples=60)
@given(
    arrays_of.arrays(
        st.sampled_from([np.dtype(name) for name in DTYPES]), arrays_of.array_shapes(min_dims=0, max_dims=3, min_side=0)
    ),
    st.lists(st.integers(0, 12), max_size=3),
    st.integers(1, 64),
)
def test_an_array_comes_back_as_it_was(array: np.ndarray, cuts: list[int], block: int) -> None:
    arrays = BlockArrays(MemoryObjects())
    found = arrays.read(arrays.write(array, cuts if array.ndim else (), block=max(block, array.itemsize)))
    assert found.dtype == array.dtype
    assert found.shape == array.shape
    assert found.tobytes() == array.tobytes()


@given(st.lists(st.text(max_size=30), max_size=50), st.lists(st.integers(0, 60), max_size=3))
def test_ids_of_text_come_back(texts: list[str], cuts: list[int]) -> None:
    arrays = BlockArrays(MemoryObjects())
    assert read_ids(arrays, write_ids(arrays, texts, np.array(sorted(cuts), dtype=np.int64))) == texts


def test_one_long_id_does_not_widen_the_others() -> None:
    objects = MemoryObjects()
    arrays = BlockArrays(objects)
    texts = [*(f"node {number}" for number in range(1000)), "x" * 500_000]
    assert read_ids(arrays, write_ids(arrays, texts, np.zeros(0, np.int64))) == texts
    assert sum(map(len, objects.content.values())) < 600_000


def test_rows_that_did_not_change_are_shared(tmp_path: Path) -> None:
    objects = ObjectFolder(tmp_path, ReadCounter())
    arrays = BlockArrays(objects)
    rows = np.random.default_rng(0).standard_normal((1000, 8))
    first = block_names(arrays.write(rows, range(100, 1000, 100)))
    more = np.concatenate([rows, rows[:1]])
    second = block_names(arrays.write(more, range(100, 1001, 100)))
    assert len(first) == 10
    assert len(second - first) == 1, "the row that came"
    changed = rows.copy()
    changed[555] = 0
    assert len(block_names(arrays.write(changed, range(100, 1000, 100))) - first) == 1


def test_a_block_that_is_not_whole_is_written_again(tmp_path: Path) -> None:
    content = bytes(range(256)) * 9
    name = ObjectFolder(tmp_path, ReadCounter()).put(content)
    (tmp_path / name).write_bytes(b"0" + content[:-1])
    with pytest.raises(Damaged):
        ObjectFolder(tmp_path, ReadCounter()).get(name, len(content))
    assert ObjectFolder(tmp_path, ReadCounter()).put(content) == name
    assert ObjectFolder(tmp_path, ReadCounter()).get(name, len(content)) == content


def test_what_is_read_is_counted(tmp_path: Path) -> None:
    counter = ReadCounter()
    name = ObjectFolder(tmp_path, ReadCounter()).put(b"abc")
    ObjectFolder(tmp_path, counter).get(name, 3)
    assert counter.read == 4
