"""How much memory this process has."""

import numpy as np

from graphfcl.own_memory import process_bytes, resident_bytes


def test_what_is_held_counts() -> None:
    before = resident_bytes()
    held = np.ones(8_000_000)
    assert 60e6 < resident_bytes() - before < 100e6
    del held


def test_a_process_is_measured_once() -> None:
    first = process_bytes()
    assert 50e6 < first < 20e9
    held = np.ones(1_000_000)
    assert process_bytes() == first
    del held
