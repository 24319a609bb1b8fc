"""The line of a row of a text file."""

from pathlib import Path

import pytest

from graphfcl.graph.tables.text_files import lines_at

CELLS = ['"two\nlines"', '"three\r\nlines\n"', "plain", '5" disk', '"a "" quote"', '""']


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("above", ["", "\ufeff", "\n\n"])
def test_empty_lines_and_breaks_in_quotes_are_counted(tmp_path: Path, ends: str, above: str) -> None:
    rows = [f"{number};{cell}" for number, cell in enumerate(CELLS * 2)]
    text = above + "id;cell" + ends + "".join(row + ends * (1 + number % 3) for number, row in enumerate(rows))
    file = tmp_path / "nodes.csv"
    file.write_text(text, encoding="utf-8", newline="")
    lines = text.lstrip("\ufeff").replace("\r\n", "\n").split("\n")
    for number in range(len(rows)):
        (line,) = lines_at(file, ";", [number])
        assert lines[line - 1].startswith(f"{number};"), line


def test_a_value_longer_than_the_reader_takes(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,text\n1," + "x" * 200_000 + "\n2,\n")
    assert lines_at(tmp_path / "nodes.csv", ",", [1]) == [3]
    assert lines_at(tmp_path / "none.csv", ",", [1]) == [3]
