"""Parts: what is written comes back, what did not change is written once, and only what is asked for is read."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from graphfcl.production.store.checks import Damaged
from graphfcl.production.store.database import Database
from graphfcl.production.store.ids import IdLookup, id_arrays, id_cuts, lookup_part, read_ids
from graphfcl.production.store.parts import DTYPES, Part, Parts, PartSource, read_part, write_part
from tests.production.crafting import CraftedDatabase

SHORT = 1 << 15


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Database:
    database = Database(tmp_path_factory.mktemp("parts") / "model.sqlite", lasting=False)
    database.begin()
    return database


@settings(max_examples=60)
@given(
    arrays_of.arrays(
        st.sampled_from([np.dtype(name) for name in DTYPES]), arrays_of.array_shapes(min_dims=0, max_dims=3, min_side=0)
    ),
    st.lists(st.integers(0, 12), max_size=3),
    st.integers(8, 64),
    st.tuples(st.integers(0, 12), st.integers(0, 12)),
)
def test_an_array_comes_back_as_it_was(
    database: Database, array: np.ndarray, cuts: list[int], chunk: int, rows: tuple[int, int]
) -> None:
    name = write_part(database, Part({"x": 1}, {"a": array}, {"a": np.array(cuts)} if array.ndim else {}, chunk=chunk))
    stored = read_part(database, name)
    assert stored.values == {"x": 1}
    found = stored.array("a")
    assert found.dtype == array.dtype
    assert found.shape == array.shape
    assert found.tobytes() == array.tobytes()
    if array.ndim:
        start, end = sorted(min(row, len(array)) for row in rows)
        assert stored.stored("a").rows(start, end).tobytes() == array[start:end].tobytes()


@given(st.lists(st.text(max_size=30), max_size=50), st.lists(st.integers(0, 60), max_size=3))
def test_ids_of_text_come_back(database: Database, texts: list[str], cuts: list[int]) -> None:
    arrays = id_arrays(texts)
    part = Part({}, arrays, id_cuts(arrays, np.array(sorted(cuts), dtype=np.int64)))
    assert read_ids(part).tolist() == texts
    assert read_ids(read_part(database, write_part(database, part))).tolist() == texts


def test_one_long_id_does_not_widen_the_others() -> None:
    texts = [*(f"node {number}" for number in range(1000)), "x" * 500_000]
    arrays = id_arrays(texts)
    assert read_ids(Part({}, arrays)).tolist() == texts
    assert sum(array.nbytes for array in arrays.values()) < 600_000


def test_rows_that_did_not_change_are_shared(database: Database) -> None:
    def chunks(rows: np.ndarray) -> set[str]:
        part = Part({}, {"rows": rows}, {"rows": np.arange(100, 1001, 100)})
        return set(read_part(database, write_part(database, part)).chunks())

    rows = np.random.default_rng(0).standard_normal((1000, 8))
    first = chunks(rows)
    assert len(first) == 10
    assert len(chunks(np.concatenate([rows, rows[:1]])) - first) == 1, "the row that came"
    changed = rows.copy()
    changed[555] = 0
    assert len(chunks(changed) - first) == 1


def test_a_part_is_made_once_of_the_same_objects(tmp_path: Path) -> None:
    database, made = Database(tmp_path / "model.sqlite"), []
    parts = Parts(database)
    one, two = np.arange(3), np.arange(4)

    def make() -> Part:
        made.append(1)
        return Part({}, {"one": one})

    def source(*made_of: np.ndarray) -> PartSource:
        return PartSource(make, made_of)

    database.begin()
    name = parts.write(source(one, two))
    assert parts.write(source(one, two)) == name
    assert len(made) == 1
    parts.write(source(one, two.copy()))
    assert len(made) == 2
    database.rollback()
    database.begin()
    assert parts.write(source(one, two)) == name
    assert len(made) == 3, "it is not there any more"


def test_little_is_read_and_damage_hurts_only_who_touches_it(tmp_path: Path) -> None:
    database = Database(tmp_path / "model.sqlite")
    rows = np.random.default_rng(0).standard_normal((10_000, 4)).astype(np.float32)  # which nothing makes shorter
    database.begin()
    name = write_part(database, Part({}, {"rows": rows, "wide": np.ones((3, 70_000))}, chunk=SHORT))
    database.commit()
    reader = Database(database.path)
    part = read_part(reader, name)
    described = reader.bytes_read
    np.testing.assert_array_equal(part.stored("rows").rows(7, 9), rows[7:9])
    assert reader.bytes_read == described + SHORT
    part.stored("rows").rows(7, 9)
    assert reader.bytes_read == described + SHORT, "a chunk is kept for a while"
    hurt = rows[4096:6144].tobytes()
    crafted = CraftedDatabase(database.path)
    crafted.put(hurt, instead=b"x" + hurt[1:])
    part = read_part(Database(database.path), name)
    np.testing.assert_array_equal(part.stored("rows").take([0, 9999]), rows[[0, 9999]])
    for read in (lambda: part.stored("rows").rows(5000, 5001), lambda: part.array("rows")):
        with pytest.raises(Damaged, match="is damaged"):
            read()
    assert part.array("wide").sum() == 210_000


@settings(max_examples=25, deadline=None)
@given(
    st.one_of(
        st.lists(st.text(max_size=8), unique=True, max_size=3000),
        st.lists(st.integers(-(2**63), 2**63 - 1), unique=True, max_size=3000),
    )
)
def test_every_id_is_found_and_no_other(database: Database, ids: list[str] | list[int]) -> None:
    whole = bool(ids) and isinstance(ids[0], int)
    array = np.array(ids, dtype=np.int64) if whole else np.array([str(text) for text in ids], dtype=object)
    lookup = IdLookup(read_part(database, write_part(database, lookup_part(array))))
    assert lookup.find_all(ids) == lookup.find_all([str(each) for each in ids]) == list(range(len(ids)))
    for other in ("nobody at all", 12345, "007", "²", -1):
        known = [str(each) for each in ids]
        assert lookup.find_all([other]) == ([known.index(str(other))] if str(other) in known else None)
        assert str(other) in known or lookup.find_all([*ids, other]) is None
