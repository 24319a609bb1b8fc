"""Small graphs in place of those that pages name and short training, so that every page runs within seconds.

``debian`` keeps the packages that a page names, their ids, sections and words; all other names become synthetic graphs.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl import Dataset, Graph, Learner, Protocol, build_graph, find_dataset, load_dataset
from graphfcl.datasets.registry import REGISTRY
from graphfcl.methods import Method
from graphfcl.runtime.registry import Entry
from tests.docs.blocks import page_paths
from tests.methods.test_checks import QUICK

SECTIONS = (
    "libs",
    "python",
    "libdevel",
    "perl",
    "sound",
    "oldlibs",
    "editors",
    "fonts",
    "electronics",
    "games",
    "rust",
)
OF_A_SECTION = 40
SYNTHETIC = "synthetic:nodes=400,edges=1600,classes=12,features=80,signal=0.9,skew=0.3"
PROTOCOL = Protocol(base=4, pseudo_novel=3, novel=4, way=2, shot=5)
KEPT = {"synthetic", "shop-demo"}  # small enough, and pages name their nodes


def small_debian(texts: Iterable[str]) -> Graph:
    """The packages that texts name, and those of some sections that have the most links among each other."""
    whole, _ = load_dataset("debian")
    words = {word.strip(".") for text in texts for word in re.findall(r"[\w.+-]+", text)}
    named = np.flatnonzero([node in words for node in whole.node_ids])
    numbers = [whole.class_names.index(name) for name in SECTIONS]
    candidates = np.flatnonzero(np.isin(whole.labels, numbers))
    links = np.diff(whole.adjacency[candidates][:, candidates].indptr)
    linked = candidates[np.argsort(-links, kind="stable")]
    rows = [linked[whole.labels[linked] == number][:OF_A_SECTION] for number in numbers]
    named = named[np.isin(whole.labels[named], numbers)]
    chosen = np.unique(np.concatenate([named, *rows]))
    features = whole.features[chosen]
    assert whole.feature_names is not None
    asked = np.isin(whole.feature_names, ["game", "strategy"])
    columns = np.flatnonzero((np.bincount(features.indices, minlength=features.shape[1]) >= 2) | asked)
    return build_graph(
        whole.adjacency[chosen][:, chosen],
        features[:, columns],
        np.array(whole.class_names, dtype=object)[whole.labels[chosen]],
        node_ids=whole.node_ids[chosen],
        feature_names=whole.feature_names[columns],
        name="debian",
    )


@cache
def small_datasets() -> dict[str, Entry[Dataset]]:
    """All datasets by name, each with a small graph."""
    debian = small_debian([path.read_text() for path in page_paths()])
    synthetic, options = find_dataset(SYNTHETIC)

    def small(dataset: Dataset) -> Dataset:
        if dataset.name in KEPT:
            return dataset

        def load(_: Path, __: dict[str, str]) -> Graph:
            return debian if dataset.name == "debian" else replace(synthetic.read(None, options), name=dataset.name)

        return replace(dataset, load=load, protocol=PROTOCOL, files=())

    return {name: Entry(name, small(entry.thing)) for name, entry in REGISTRY.own.items()}


@contextmanager
def small_world() -> Iterator[None]:
    """Names of datasets mean small graphs, and methods train for few steps unless they are told otherwise."""
    whole, make = REGISTRY.own, Method.make

    def make_quick(
        self: Method, changes: dict[str, Any] | None = None, *, seed: int = 0, device: str = "cpu"
    ) -> Learner:
        return make(self, {**QUICK.get(self.name, {}), **(changes or {})}, seed=seed, device=device)

    REGISTRY.own, Method.make = small_datasets(), make_quick  # type: ignore[method-assign]
    try:
        yield
    finally:
        REGISTRY.own, Method.make = whole, make  # type: ignore[method-assign]
