"""How much memory this process has."""

import numpy as np

from graphfcl.own_memory import process_bytes
from tests.cli.command import run_python

HOLD = """
import numpy as np
from graphfcl.own_memory import resident_bytes
before = resident_bytes()
held = np.ones(8_000_000)
print(resident_bytes() - before)
"""


def test_what_is_held_counts() -> None:
    # In a process of its own: one that has done much may take the array from what it has let go of.
    assert 60e6 < int(run_python("-c", HOLD).out) < 100e6


def test_a_process_is_measured_once() -> None:
    first = process_bytes()
    assert 50e6 < first < 20e9
    held = np.ones(1_000_000)
    assert process_bytes() == first
    del held
