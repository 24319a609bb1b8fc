"""ANCHOR with an encoder of the graph, one of stored hops, and none, on the development graphs.

python -m scripts.encoder_inputs FOLDER [SEEDS] [key=value …]: FOLDER has the graphs as .npz files (CONTRIBUTING.md says
how to build ``tree`` and ``packages``). Prints for every graph, seed and input the balanced accuracy after the last
session and its mean over sessions, and the seconds, on the track ``open`` with the default protocol.
"""

import sys
import time
import warnings
from pathlib import Path

import numpy as np

from graphfcl.cli.options import settings_from_options
from graphfcl.evaluation import evaluate
from graphfcl.graph import read_npz
from graphfcl.methods import find_method
from graphfcl.stream import make_stream

GRAPHS = ("cora_ml", "uai", "tree", "packages")
INPUTS = ("graph", "hops", "none")


def measured(path: Path, seed: int, encoder_input: str, changes: dict[str, str]) -> tuple[float, float, float]:
    """The last balanced accuracy, the mean over sessions, and seconds."""
    stream = make_stream(read_npz(path), seed=seed, track="open")
    learner = find_method("anchor").make({**changes, "encoder_input": encoder_input}, seed=seed)
    start = time.perf_counter()
    sessions = evaluate(learner, stream).metrics.sessions
    accuracies = [session.balanced_accuracy for session in sessions]
    return accuracies[-1], float(np.mean(accuracies)), time.perf_counter() - start


def main(folder: Path, seeds: int, changes: dict[str, str]) -> None:
    """Print one line for each run, and the means."""
    warnings.simplefilter("ignore")
    for name in GRAPHS:
        found = {kind: [] for kind in INPUTS}  # type: dict[str, list[tuple[float, float, float]]]
        for seed in range(seeds):
            for kind in INPUTS:
                found[kind].append(measured(folder / f"{name}.npz", seed, kind, changes))
                last, mean, seconds = found[kind][-1]
                print(f"{name:10} seed {seed} {kind:6} last {last:.4f} mean {mean:.4f} {seconds:6.1f} s", flush=True)
        for kind, runs in found.items():
            last, mean, seconds = np.mean(runs, axis=0)
            print(f"{name:10} MEAN   {kind:6} last {last:.4f} mean {mean:.4f} {seconds:6.1f} s", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 3, settings_from_options(sys.argv[3:]))
