"""Write the golden files again: ``python -m tests.golden.record [numbers] [texts]``.

A change of the code's shape must not need ``numbers``; a commit that needs it says why.
"""

import json
import platform
import sys
from pathlib import Path

import numpy as np

import graphfcl
from graphfcl.methods import METHODS
from tests.cli.command import graphfcl_inside
from tests.golden.samples import TRACKS, outline, walk

FOLDER = Path(__file__).parent
VERBS: tuple[tuple[str, ...], ...] = (
    (),
    *(("data", verb) for verb in ("list", "show", "import")),
    *((verb,) for verb in ("data", "stream", "run", "methods", "check", "bench", "report")),
    *((verb,) for verb in ("fit", "learn", "grow", "predict", "explain", "history", "rollback", "unlearn", "rename")),
    *((verb,) for verb in ("merge", "retire", "shrink", "labels", "prune", "info", "refit", "erase")),
    *((verb,) for verb in ("suggest", "groups")),
)


def help_of(verb: tuple[str, ...]) -> list[str]:
    """The words of a help page; how wide a terminal is, so that lines end elsewhere, does not matter."""
    return " ".join(graphfcl_inside(*verb, "--help").out.split()).replace("- ", "-").split()


def record_numbers() -> None:
    """Scores and outlines of states."""
    scores, outlines = {}, {}
    for method in METHODS:
        for track in TRACKS:
            scores[f"{method.name} {track}"], state = walk(method.name, track)
            outlines[f"{method.name} {track}"] = outline(state)
    np.savez_compressed(FOLDER / "scores.npz", allow_pickle=False, **scores)
    (FOLDER / "states.json").write_text(json.dumps(outlines, indent=1) + "\n")
    (FOLDER / "machine.json").write_text(json.dumps(platform.machine()) + "\n")


def record_texts() -> None:
    """Public names and help pages."""
    (FOLDER / "names.json").write_text(json.dumps(sorted(graphfcl.__all__), indent=1) + "\n")
    pages = {" ".join(verb): " ".join(help_of(verb)) for verb in VERBS}
    (FOLDER / "help.json").write_text(json.dumps(pages, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    for what in sys.argv[1:] or ("numbers", "texts"):
        {"numbers": record_numbers, "texts": record_texts}[what]()
