"""Datasets by name. One of this package is added by one file that makes a ``Dataset`` and one line in ``PLACES``.

Nothing is imported before it is used, so that a shell is offered names at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphfcl.errors import InputError
from graphfcl.runtime.registry import Entry, Registry, check_name
from graphfcl.runtime.source_code import reference_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphfcl.datasets.dataset import Dataset

# By name: the module of this package and what is made there. Their order is that of ``graphfcl data list``.
PLACES: Mapping[str, str] = {
    "debian": "npz_graphs:DEBIAN",
    "wordnet": "npz_graphs:WORDNET",
    "amazon-clothing": "gpn:AMAZON_CLOTHING",
    "amazon-clothing-20": "gpn:AMAZON_CLOTHING_20",
    "dblp": "gpn:DBLP",
    "reddit": "reddit:REDDIT",
    "reddit-dgl": "reddit:REDDIT_DGL",
    "cora-topics": "npz_graphs:CORA_TOPICS",
    "coauthor-cs": "npz_graphs:COAUTHOR_CS",
    "amazon-computers": "npz_graphs:AMAZON_COMPUTERS",
    "cora-ml": "npz_graphs:CORA_ML",
    "shop-demo": "shop_demo:SHOP_DEMO",
    "synthetic": "synthetic:SYNTHETIC",
    "synthetic-reddit": "synthetic:SYNTHETIC_REDDIT",
}


def register_dataset(dataset: Dataset) -> Dataset:
    """Make a dataset of your own known by its name, in this process and in the workers of its grids.

    An installed package offers one with an entry point of the group ``graphfcl.datasets``.
    """
    return REGISTRY.register(dataset).thing


def all_datasets() -> list[Dataset]:
    """All datasets: those of this package, registered ones and installed plug-ins."""
    return [entry.thing for entry in REGISTRY.all()]


def outside_datasets() -> tuple[Dataset, ...]:
    """What was registered in this process."""
    return tuple(entry.thing for entry in REGISTRY.outside())


def _check(dataset: Any, where: str) -> None:
    from graphfcl.datasets.dataset import Dataset

    if not isinstance(dataset, Dataset):
        raise InputError(f"{where}: it is no graphfcl.Dataset: give Dataset(name, title, load, source).")
    check_name(dataset.name, where, "the dataset")
    if not callable(dataset.load):
        raise InputError(
            f"{where}: load of {dataset.name} cannot be called: give a function (folder, options) -> Graph."
        )


REGISTRY: Registry[Dataset, Entry[Dataset]] = Registry(
    "dataset",
    "graphfcl.datasets",
    {name: f"graphfcl.datasets.{place}" for name, place in PLACES.items()},
    Entry,
    _check,
    reference=lambda dataset: reference_of(dataset.load),
)
