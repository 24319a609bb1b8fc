"""A cell of a grid: one run, described by plain values."""

import hashlib
import json
import warnings
from dataclasses import asdict, dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.active import find_strategy
from graphfcl.datasets import load_dataset
from graphfcl.errors import GraphNote, InputError
from graphfcl.evaluation import needs_oracle
from graphfcl.experiments.runs import Run, run
from graphfcl.methods import Learner, Progress, find_method
from graphfcl.stream import PROTOCOL_VERSION, Stream, make_stream, refuse_other_version

OPTIONAL_KEYS = ("source", "strategy", "strategy_source")  # part of key and JSON only if they are not empty
OTHER_FOLDER = "choose another --out folder; nothing in this one was changed"
EMBEDDED_NODES = 1500  # at most, in an embedding plot


@dataclass(frozen=True)
class Cell:
    """A run of a method with some settings on a dataset, under some rules and with a seed.

    Args:
        dataset: Name of the dataset, with its options.
        method: Name of the method.
        seed: Seed of the stream and the learner.
        variant: Name of the row in tables. The default is the method's name, followed by the strategy's.
        rules: Changes to the dataset's default protocol.
        settings: Changes to the method's default settings.
        embed: Store a plot of the embedding after the last session.
        source: ``module:Class`` and hash of the code of a method from outside the package; empty for its own methods.
        strategy: Strategy under the track ``active``; empty under other tracks.
        strategy_source: The same as ``source`` for the strategy.
        protocol_version: Protocol version under which the cell runs.
    """

    dataset: str
    method: str
    seed: int
    variant: str = ""
    rules: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    embed: bool = False
    source: str = ""
    strategy: str = ""
    strategy_source: str = ""
    protocol_version: int = PROTOCOL_VERSION

    @property
    def row(self) -> str:
        """Name of the row in tables."""
        return self.variant or (f"{self.method}, {self.strategy}" if self.strategy else self.method)

    @property
    def key(self) -> str:
        """Name of its file: see :func:`cell_key`."""
        return cell_key(self.as_json())

    def as_json(self) -> dict[str, Any]:
        values = {name: value for name, value in asdict(self).items() if name not in OPTIONAL_KEYS or value}
        return json.loads(json.dumps(values))


def cell_key(values: dict[str, Any]) -> str:
    """Hash the JSON of a cell. Cells that differ only in the name of their row have the same key."""
    hashed = {name: value for name, value in values.items() if name != "variant"}
    return hashlib.sha256(json.dumps(hashed, sort_keys=True).encode()).hexdigest()[:20]


def cell_stream(cell: Cell, data_dir: Path | None) -> Stream:
    """The stream of a cell. Up to three streams are cached, because cells with the same seed follow each other."""
    return _stream(cell.dataset, cell.seed, json.dumps(cell.rules, sort_keys=True), data_dir)


@lru_cache(maxsize=3)
def _graph(dataset: str, data_dir: Path | None) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GraphNote)  # every worker would repeat the notes
        return load_dataset(dataset, data_dir=data_dir)


@lru_cache(maxsize=3)
def _stream(dataset: str, seed: int, rules: str, data_dir: Path | None) -> Stream:
    graph, protocol = _graph(dataset, data_dir)
    changes = {key: tuple(value) if isinstance(value, list) else value for key, value in json.loads(rules).items()}
    return make_stream(graph, protocol, seed=seed, **changes)


def run_cell(
    cell: Cell, *, device: str, encoders: Path, data_dir: Path | None, progress: bool | Progress | None = None
) -> dict[str, Any]:
    """Run a cell and return its result, as :func:`graphfcl.experiments.run` does."""
    sources = [(cell.method, find_method(cell.method, cell.source).source, cell.source)]
    if cell.strategy and not needs_oracle(cell.strategy):
        strategy = find_strategy(cell.strategy, cell.strategy_source)
        sources.append((cell.strategy, strategy.source, cell.strategy_source))
    for name, now, then in sources:
        if now != then:
            raise InputError(
                f"the code of {name} was edited after this grid was started: start the grid again to run its cells "
                "with the new code."
            )
    refuse_other_version(cell.protocol_version, f"the cell of {cell.method}", OTHER_FOLDER)
    stream = cell_stream(cell, data_dir)
    job = Run(stream, cell.method, cell.settings, device, cell.strategy)
    after = partial(_embedding, stream=stream) if cell.embed else None
    return run(job, progress=progress, encoders=encoders, after=after)


def _embedding(learner: Learner, stream: Stream) -> dict[str, Any]:
    return {"embedding": embedding_plot(learner, stream)}


def embedding_plot(learner: Learner, stream: Stream) -> dict[str, Any]:
    """Compute t-SNE of embeddings of test nodes after the last session, with the same nodes for every learner."""
    from sklearn.manifold import TSNE

    stream, last = stream.fresh(), len(stream)
    queries, visible = stream.queries(last), stream.evaluation_graph(last)
    random = np.random.default_rng([stream.seed, 9])
    chosen = np.sort(random.permutation(queries.nodes.size)[:EMBEDDED_NODES])
    # Vectors of all nodes, so that the learner cannot tell the test nodes.
    vectors = learner.vectors_to_draw(visible, visible.nodes)
    if vectors is None:
        return {}
    values = vectors[visible.rows(queries.nodes[chosen])]
    perplexity = min(30.0, max(2.0, (chosen.size - 1) / 3))
    points = TSNE(perplexity=perplexity, init="pca", random_state=stream.seed).fit_transform(values.astype(np.float64))
    return {
        "nodes": stream.node_of_number[queries.nodes[chosen]].tolist(),
        "labels": queries.labels[chosen].tolist(),
        "x": [round(float(x), 2) for x in points[:, 0]],
        "y": [round(float(y), 2) for y in points[:, 1]],
    }
