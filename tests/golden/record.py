"""Record the golden files: ``python -m tests.golden.record``.

A commit that moves code must not need it; a commit that needs it says which figures change and why.

Floating-point sums depend on the kind of machine, so figures are kept for each kind in ``KIND.npz``: x86_64 is
recorded. An aarch64 machine that records adds its own file; until then its figures are compared with those of
x86_64, with a larger tolerance.
"""

import platform
from pathlib import Path

import numpy as np

from graphfcl.active import STRATEGIES
from graphfcl.methods import METHODS
from tests.golden.samples import TRACKS, learned_scores, model_answers, selected_nodes

FOLDER = Path(__file__).parent
KIND = platform.machine()


def recorded() -> tuple[dict[str, np.ndarray], bool]:
    """The golden figures to compare with, and whether this kind of machine recorded them."""
    own = FOLDER / f"{KIND}.npz"
    with np.load(own if own.exists() else FOLDER / "x86_64.npz", allow_pickle=False) as archive:
        return dict(archive), own.exists()


def record() -> None:
    figures: dict[str, np.ndarray] = {}
    for method in METHODS:
        for track in TRACKS:
            figures[f"{method.name} {track}"] = learned_scores(method.name, track)
        for what, answers in model_answers(method.name).items():
            figures[f"{method.name} model {what}"] = answers
    for strategy in STRATEGIES:
        figures[f"strategy {strategy}"] = selected_nodes(strategy)
    np.savez_compressed(FOLDER / f"{KIND}.npz", allow_pickle=False, **figures)


if __name__ == "__main__":
    record()
