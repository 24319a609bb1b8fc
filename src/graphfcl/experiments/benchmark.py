"""The benchmark: fifty streams, ten seeds on each of five graphs, identified by their hashes."""

import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from graphfcl.datasets import data_folder, find_dataset, load_dataset
from graphfcl.errors import GraphfclWarning, InputError
from graphfcl.stream import Stream, make_stream, stream_hash

GRAPHS = ("debian", "wordnet", "amazon-clothing-20", "cora-topics", "coauthor-cs")
SEEDS = 10


@dataclass(frozen=True)
class Verified:
    """A compared stream. ``same`` says whether it has the published hash; None if the graph's files are missing."""

    graph: str
    seed: int
    same: bool | None


@cache
def benchmark_hashes() -> dict[str, Any]:
    """The published hashes: ``protocol_version``, and ``streams``, which maps a graph to the hashes of seeds 0 to 9."""
    return json.loads(files("graphfcl.experiments").joinpath("benchmark.json").read_text())


def benchmark_streams(graph: str, data_dir: Path | None) -> Iterator[Stream]:
    """Draw the ten streams of a graph."""
    loaded, protocol = load_dataset(graph, data_dir=data_dir)
    for seed in range(SEEDS):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GraphfclWarning)  # the benchmark leaves small classes out
            stream = make_stream(loaded, protocol, seed=seed)
        yield stream


def verify_graph(graph: str, data_dir: Path | None) -> Iterator[Verified]:
    """Draw the streams of a graph and compare them with the published hashes."""
    hashes = benchmark_hashes()["streams"].get(graph)
    if hashes is None:
        raise InputError(f"{graph} is not a graph of the benchmark: choose one of {', '.join(GRAPHS)}.")
    dataset, _ = find_dataset(graph)
    if dataset.files and dataset.missing_files(data_folder(data_dir)):
        yield from (Verified(graph, seed, None) for seed in range(SEEDS))
        return
    for seed, stream in enumerate(benchmark_streams(graph, data_dir)):
        yield Verified(graph, seed, stream_hash(stream) == hashes[seed])


def verify_stream(stream: Stream, graph: str) -> Verified:
    """Compare a stream, for example from a file, with the benchmark's stream of its graph and seed."""
    hashes = benchmark_hashes()["streams"].get(graph, [])
    return Verified(graph, stream.seed, stream.seed < len(hashes) and stream_hash(stream) == hashes[stream.seed])
