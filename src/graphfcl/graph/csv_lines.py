"""Where a row of a text file stands. Files are read without counting lines; who has to name one reads up to it."""

import csv
from pathlib import Path


def line_of_row(path: Path, separator: str, row: int) -> int:
    """The line, counted from 1, in which a row begins; row 0 is the first below the header.

    Empty lines are no rows, and a value in quotes may go over several lines.
    """
    rows = -1  # the header is none
    begins = 1
    try:
        with open(path, encoding="utf-8-sig", errors="replace", newline="") as file:
            reader = csv.reader(file, delimiter=separator)
            for values in reader:
                if values and rows == row:
                    return begins
                rows += bool(values)
                begins = reader.line_num + 1
    except (OSError, csv.Error):  # a value of more bytes than the reader takes, or a file that is gone by now
        pass
    return row + 2
