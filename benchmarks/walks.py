"""What benchmarks share that walk through streams: datasets and seeds from the environment, processes, and a table.

With the prefix ``NAME``: ``NAME_DATASETS`` and ``NAME_SEEDS`` (comma-separated), ``NAME_JOBS`` and ``NAME_DEVICE``
change the run; ``NAME_OUT`` keeps the table as CSV.
"""

import csv
import os
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from typing import Any

from graphfcl.datasets import load_dataset
from graphfcl.errors import GraphfclWarning
from graphfcl.stream import Stream, make_stream

DATASETS = "debian,wordnet,amazon-clothing-20,cora-topics,coauthor-cs"

Row = dict[str, Any]


def rows_of_walks(
    prefix: str, walk: Callable[..., list[Row]], *further: Any, graphs: str = DATASETS, draws: str = "0,1,2"
) -> list[Row]:
    """``walk(dataset, seed, device, *further)`` for every dataset and seed. graphs, draws: the usual ones."""
    datasets = os.environ.get(f"{prefix}_DATASETS", graphs).split(",")
    seeds = [int(seed) for seed in os.environ.get(f"{prefix}_SEEDS", draws).split(",")]
    device, jobs = os.environ.get(f"{prefix}_DEVICE", "cpu"), int(os.environ.get(f"{prefix}_JOBS", "1"))
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(walk, *each, device, *further) for each in product(datasets, seeds)]
        rows = [row for each in waiting for row in each.result()]
    if f"{prefix}_OUT" in os.environ:
        keys = list(dict.fromkeys(key for row in rows for key in row))
        with open(os.environ[f"{prefix}_OUT"], "w", newline="") as file:
            writer = csv.DictWriter(file, keys, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    return rows


def open_stream(dataset: str, seed: int, device: str, shot: int | None = None) -> Stream:
    """A stream of the track ``open``; processes beside a GPU take one thread each. shot: labels of a new class."""
    import torch

    if device != "cpu":
        torch.set_num_threads(1)
    warnings.simplefilter("ignore", GraphfclWarning)
    graph, protocol = load_dataset(dataset, data_dir=os.environ.get("GRAPHFCL_DATA"))
    return make_stream(graph, protocol, seed=seed, track="open", shot=shot)
