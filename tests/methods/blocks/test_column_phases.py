"""Hops and smoothing over slices: right, the same to the byte however they are computed, and not computed twice."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from graphfcl import InputError, Resources
from graphfcl.graph.folder.visible import VisibleFolder
from graphfcl.methods.blocks.column_phases import MOST_SLICES, STREAMED, slices_at_a_time
from graphfcl.methods.blocks.folder_tables import FolderTables
from graphfcl.methods.blocks.stored_table import StoredTable
from graphfcl.runtime.memory import parse_bytes, process_bytes
from tests.methods.blocks.samples import folder_of, in_memory, random_graph, visible_folder


def whole(table: StoredTable) -> np.ndarray:
    return np.concatenate([table.block(start) for start, _ in table.blocks])


def bytes_of(table: StoredTable) -> list[bytes]:
    return [file.path.read_bytes() for file in table.files]


def hop_tables(visible: VisibleFolder, hops: tuple[int, ...] = (1, 2), width: int = 40) -> list[StoredTable]:
    inputs = FolderTables(visible, 0, unit=True)
    basis = torch.eye(40)[:, :width]
    return [table.readable() for table in inputs.hops(inputs.own(basis), hops)]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_hops_equal_a_plain_loop(tmp_path: Path, weighted: bool, masked: bool) -> None:
    folder = folder_of(random_graph(300, weighted=weighted), tmp_path / "graph")
    mask = np.random.default_rng(1).random(300) < 0.7 if masked else None
    shown = np.ones(300, dtype=bool) if mask is None else mask
    edges = [
        (row, int(other), 1.0 if part.weights is None else float(part.weights[place]))
        for row in range(300)
        for part in [folder.neighbours(row, row + 1)]
        for place, other in enumerate(part.indices)
        if shown[row] and shown[other]
    ]
    degrees = np.ones(300)
    for row, _, weight in edges:
        degrees[row] += weight
    features = folder.features(0, 300).astype(np.float64)
    values = features / np.linalg.norm(features, axis=1, keepdims=True)
    for table in hop_tables(visible_folder(folder, tmp_path / "work", mask)):
        around = values / degrees[:, None] * shown[:, None]
        for row, other, weight in edges:
            around[row] += weight * values[other] / np.sqrt(degrees[row] * degrees[other])
        values = around
        np.testing.assert_allclose(whole(table), values, atol=2e-6)


@pytest.mark.long
def test_workers_and_memory_change_no_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_of(random_graph(2000, weighted=True), tmp_path / "graph")
    mask = np.random.default_rng(1).random(2000) < 0.9
    first = hop_tables(visible_folder(folder, tmp_path / "a", mask))
    memory = Resources(tmp_path, 0).needed_for(STREAMED + 2000 * (8 * 4 * 2 + 8), 2000)
    narrow = visible_folder(folder, tmp_path / "b", mask, memory=memory)
    assert slices_at_a_time(2000, 2, narrow.resources) == 1
    assert slices_at_a_time(2000, 2, visible_folder(folder, tmp_path, mask).resources) == MOST_SLICES
    two = visible_folder(folder, tmp_path / "c", mask, workers=2)
    for other in (hop_tables(narrow), hop_tables(two)):
        assert [bytes_of(table) for table in other] == [bytes_of(table) for table in first]
    monkeypatch.setattr("graphfcl.methods.blocks.source.EDGES_AT_A_TIME", 50)
    in_small_steps = hop_tables(visible_folder(folder, tmp_path / "d", mask))
    assert [bytes_of(table) for table in in_small_steps] == [bytes_of(table) for table in first]


def test_a_column_is_the_same_in_a_slice_of_any_width(tmp_path: Path) -> None:
    folder = folder_of(random_graph(400, weighted=True), tmp_path / "graph")
    wide = hop_tables(visible_folder(folder, tmp_path / "a"))
    for width in (1, 3, 9):
        narrow = hop_tables(visible_folder(folder, tmp_path / "b"), width=width)
        for one, other in zip(wide, narrow, strict=True):
            assert whole(one)[:, :width].tobytes() == whole(other).tobytes()


def test_smoothing_equals_a_plain_loop(tmp_path: Path) -> None:
    folder = folder_of(random_graph(300), tmp_path / "graph")
    mask = np.random.default_rng(1).random(300) < 0.8
    inputs = FolderTables(visible_folder(folder, tmp_path / "work", mask), 0, unit=True)
    first = inputs.own(torch.eye(40)[:, :11])
    actual = whole(inputs.smoothed(first, 0.7, 3).readable())
    start = whole(first.readable())[mask]
    expected, matrix = start, in_memory(folder, mask).normalised
    for _ in range(3):
        expected = 0.7 * (matrix @ expected) + 0.3 * start
    np.testing.assert_allclose(actual[mask], expected, atol=2e-6)


def test_what_is_there_is_not_computed_again(tmp_path: Path) -> None:
    folder = folder_of(random_graph(300), tmp_path / "graph")
    visible = visible_folder(folder, tmp_path / "work")
    table = hop_tables(visible)[1]
    before, times = bytes_of(table), [file.path.stat().st_mtime_ns for file in table.files]
    cut, gone = table.files[1].path, table.files[3].path
    cut.write_bytes(before[1][:-100])
    gone.unlink()
    assert table.missing() == [1, 3]
    again = hop_tables(visible)[1]
    assert bytes_of(again) == before
    kept = [number for number, file in enumerate(again.files) if file.path.stat().st_mtime_ns == times[number]]
    assert kept == [0, 2, 4]


def test_a_stale_file_under_another_name_is_computed_again(tmp_path: Path) -> None:
    folder = folder_of(random_graph(300), tmp_path / "graph")
    one, two = hop_tables(visible_folder(folder, tmp_path / "work"))
    one.files[0].path.write_bytes(two.files[0].path.read_bytes())
    assert one.missing() == [0]


def test_a_changed_tile_is_refused_in_one_sentence(tmp_path: Path) -> None:
    folder = folder_of(random_graph(300), tmp_path / "graph")
    table = hop_tables(visible_folder(folder, tmp_path / "work"))[0]
    path = table.files[2].path
    content = bytearray(path.read_bytes())
    content[700] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"slice-0002 is damaged and was removed: start again"):
        table.block(0)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_limit_too_small_says_which_is_needed(tmp_path: Path, workers: int) -> None:
    folder, basis = folder_of(random_graph(300), tmp_path / "graph"), torch.eye(40)

    def inputs(memory: int) -> FolderTables:
        return FolderTables(visible_folder(folder, tmp_path / "work", memory=memory, workers=workers), 0, unit=True)

    def needed(what: str, compute: Callable[[FolderTables], object]) -> int:
        for memory in (1 << 20, process_bytes() + (1 << 16)):
            with pytest.raises(InputError, match=rf"--memory .* is too small: {what}") as told:
                compute(inputs(memory))
        enough = parse_bytes(re.findall(r"needs? ([\d.]+[KMG]B); give", str(told.value))[0], "--memory")
        with pytest.raises(InputError, match="too small"):
            compute(inputs(enough * 8 // 10))
        return enough

    for_rows = needed("a block of 16,384 rows of 40 columns", lambda given: given.own(basis).readable())
    own = inputs(for_rows).own(basis)
    own.readable()
    for_columns = needed("a slice of 8 columns of 300 nodes", lambda given: given.hops(own, (1,))[0].readable())
    assert not inputs(for_columns).hops(own, (1,))[0].readable().missing()


def test_a_full_disk_is_told_and_going_on_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_of(random_graph(300), tmp_path / "graph")
    visible = visible_folder(folder, tmp_path / "work")
    inputs = FolderTables(visible, 0, unit=True)
    own = inputs.own(torch.eye(40))
    own.readable()
    real, calls = os.fsync, []

    def full(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) > 12:
            raise OSError(28, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=r"the disk of .* is full: make room and start again"):
        inputs.hops(own, (1, 2))[0].readable()
    monkeypatch.setattr(os, "fsync", real)
    planned = [table.stored for table in inputs.hops(own, (1, 2))]
    done = [file for table in planned for file in table.files if file.is_whole()]
    assert 0 < len(done) < sum(len(table.files) for table in planned)
    inputs.hops(own, (1, 2))[0].readable()
    assert not any(table.missing() for table in planned)


KILLED = """
import sys, time
from pathlib import Path
from graphfcl.methods.blocks import column_phases
from graphfcl.graph.folder import GraphFolder
from tests.methods.blocks.samples import visible_folder
from tests.methods.blocks.test_column_phases import hop_tables

write = column_phases._write_slices
def slowly(*given):
    write(*given)
    time.sleep(0.4)
column_phases._write_slices = slowly
column_phases.MOST_SLICES = 1
hop_tables(visible_folder(GraphFolder.open(Path(sys.argv[1])), Path(sys.argv[2])))
"""


def test_a_killed_run_goes_on(tmp_path: Path) -> None:
    folder = folder_of(random_graph(300), tmp_path / "graph")
    expected = [bytes_of(table) for table in hop_tables(visible_folder(folder, tmp_path / "expected"))]
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(folder.path), str(tmp_path / "work")])
    visible = visible_folder(folder, tmp_path / "work")
    inputs = FolderTables(visible, 0, unit=True)
    tables = [table.stored for table in inputs.hops(inputs.own(torch.eye(40)), (1, 2))]
    until = time.monotonic() + 60
    while len(tables[0].missing()) > 3 and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    done = [file.path for table in tables for file in table.files if file.is_whole()]
    assert 0 < len(done) < 10
    times = [path.stat().st_mtime_ns for path in done]
    again = hop_tables(visible)
    assert [bytes_of(table) for table in again] == expected
    assert [path.stat().st_mtime_ns for path in done] == times
