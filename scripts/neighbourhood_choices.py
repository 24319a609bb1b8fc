"""ANCHOR with the neighbourhood chosen as in memory, on a sample as on large graph folders, and without neighbours.

python -m scripts.neighbourhood_choices FOLDER GRAPHS [SEEDS] [key=value …]: FOLDER has GRAPHS (names, with commas) as
.npz files. Prints for every graph, seed and way the neighbourhood, the balanced accuracy after the last session and its
mean over sessions, on the track ``open`` with the default protocol, and the CPU seconds of the fit on the sample. A
neighbourhood that two ways choose is run once; all of them run in memory.
"""

import sys
import tempfile
import time
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.cli.options import settings_from_options
from graphfcl.evaluation import evaluate
from graphfcl.graph import read_npz
from graphfcl.graph.folder import GraphFolder, write_folder
from graphfcl.methods import find_method
from graphfcl.methods.anchor.settings import Neighbourhood
from graphfcl.runtime.resources import Resources
from graphfcl.stream import Stream, make_stream

MEMORY = 16 << 30  # words are many columns in the passes for singular vectors
QUIET = tuple((weight, 2, 0.0, 3, 0.0) for weight in (2.0, 0.5, 0.1))  # what is chosen from without neighbours


def chosen(stream: Stream, seed: int, changes: dict[str, Any]) -> Neighbourhood:
    """What session 0 settles on; the head has no say in it."""
    learner: Any = find_method("anchor").make({**changes, "head_share": 0.0}, seed=seed)
    learner.fit(stream.base)
    how: Neighbourhood = learner.knowledge.neighbourhood
    return how


def measured(path: Path, seed: int, changes: dict[str, Any]) -> None:
    """Print the lines of one graph and seed."""
    with tempfile.TemporaryDirectory() as scratch:
        write_folder(read_npz(path), Path(scratch, "graph"))
        graph = GraphFolder.open(Path(scratch, "graph"), Resources(Path(scratch, "work"), MEMORY))
        on_disk, in_memory = (make_stream(each, seed=seed, track="open") for each in (graph, graph.loaded()))

        @cache
        def accuracies(how: Neighbourhood) -> list[float]:
            learner = find_method("anchor").make({**changes, **how._asdict()}, seed=seed)
            return [session.balanced_accuracy for session in evaluate(learner, in_memory).metrics.sessions]

        ways: dict[str, dict[str, Any]] = {"sample": {"whole_up_to": 0}, "memory": {}, "off": {"candidates": QUIET}}
        for way, more in ways.items():
            start = time.process_time()
            how = chosen(on_disk if way == "sample" else in_memory, seed, {**changes, **more})
            seconds, found = time.process_time() - start, accuracies(how)
            said = f"last {found[-1]:.4f} mean {np.mean(found):.4f} fit {seconds:6.1f} CPU s {tuple(how)}"
            print(f"{path.stem:10} seed {seed} {way:6} {said}", flush=True)


def main(folder: Path, graphs: str, seeds: str = "2", *options: str) -> None:
    warnings.simplefilter("ignore")
    for seed in range(int(seeds)):
        for name in graphs.split(","):
            measured(folder / f"{name}.npz", seed, settings_from_options(list(options)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
