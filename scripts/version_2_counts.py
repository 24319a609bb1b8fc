"""Write ``counts.csv``, which ``graphfcl.report.version_2`` reads: ``python -m scripts.version_2_counts FOLDER...``.

The sizes of the streams of a folder's grids: n_train and n_test by dataset, track and seed. Version 2 drew splits of
the same sizes as the current protocol; a test compares n_test with the confusion matrices of the stored results.
"""

import csv
import json
import sys
import warnings
from pathlib import Path

from graphfcl.errors import GraphfclWarning
from graphfcl.experiments import Cell
from graphfcl.experiments.cells import cell_stream
from graphfcl.report.version_2 import COUNTS


def main(folders: list[str]) -> None:
    warnings.simplefilter("ignore", GraphfclWarning)
    for folder in map(Path, folders):
        cells = [cell for path in (folder / "grids").glob("*.json") for cell in json.loads(path.read_bytes())["cells"]]
        found = {}
        for cell in cells:
            place = (cell["dataset"], cell["rules"].get("track", "transductive"), cell["seed"])
            found[place] = Cell(cell["dataset"], cell["method"], cell["seed"], rules=cell["rules"])
        with (folder / COUNTS).open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(("dataset", "track", "seed", "n_train", "n_test"))
            for place, cell in sorted(found.items()):
                stream = cell_stream(cell, None)
                writer.writerow((*place, stream.n_train, stream.n_test))


if __name__ == "__main__":
    main(sys.argv[1:])
