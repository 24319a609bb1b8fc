"""Bytes as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphfcl import InputError
from graphfcl.runtime.byte_sizes import bytes_from, in_units


@pytest.mark.parametrize(
    ("text", "count"), [("4GB", 4 << 30), ("1.5 gb", 3 << 29), ("800MiB", 800 << 20), ("7", 7), ("2k", 2048)]
)
def test_texts_are_read(text: str, count: int) -> None:
    assert bytes_from(text, "--memory") == count


@pytest.mark.parametrize("text", ["", "GB", "four", "-4GB", "0GB", "4XB", "4 GB 2"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"--memory is .*write it as 4GB"):
        bytes_from(text, "--memory")


@given(st.integers(1, 1 << 45))
def test_what_is_written_is_enough_and_hardly_more(count: int) -> None:
    again = bytes_from(in_units(count), "--memory")
    assert count <= again + 1 <= count * 1.1 + 2
