"""Tables in terminals of any width."""

import re

import pytest

from graphfcl.cli.output import print_table

COLUMNS = ("class", "labels", "validation nodes", "recall, %", "10 more labels", "earlier labels: recall, %", "")
ROWS = [
    ("gardening", "1,362", "90", "97.8", "+0.0", "", ""),
    ("bicycles", "20", "0", "not measured", "+11.7", "3: 0.0, 8: 62.5", "few-shot"),
]


@pytest.mark.parametrize("width", [60, 80, 200])
def test_every_column_is_shown_and_no_number_is_broken(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal
    monkeypatch.setenv("COLUMNS", str(width))
    print_table(COLUMNS, ROWS, numbers=COLUMNS[1:5])
    lines = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    assert all(len(line) <= width for line in lines)
    words = " ".join(lines).split()
    assert {"1,362", "90", "97.8", "+0.0", "20", "0", "measured", "+11.7"} <= set(words)
    starts = [line.strip()[:3] for line in lines]
    assert {"gar", "bic"} <= set(starts), "the names are there"
