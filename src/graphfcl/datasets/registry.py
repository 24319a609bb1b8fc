"""The registry of datasets. To add one, write a file that makes a ``Dataset`` and add a line to ``PLACES``.

Modules are imported on first use, so that shell completion is fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphfcl.errors import InputError
from graphfcl.runtime.registry import Entry, Registry, check_name
from graphfcl.runtime.source_code import reference_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphfcl.datasets.dataset import Dataset

# Name → module of this package and object in it, in the order of ``graphfcl data list``.
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
    """Register a dataset under its name, in this process and in its worker processes.

    An installed package can offer datasets with entry points of the group ``graphfcl.datasets`` instead.

    Args:
        dataset: The dataset.

    Returns:
        The same dataset.

    Raises:
        InputError: If it is not a :class:`Dataset`, or its name is invalid or taken.

    Examples:
        >>> import numpy as np
        >>> from graphfcl import Dataset, build_graph, load_dataset, register_dataset
        >>> def load(folder, options):
        ...     return build_graph(1 - np.eye(4), np.eye(4), ["a", "a", "b", "b"], name="clique")
        >>> _ = register_dataset(Dataset("clique-demo", "four nodes, all linked", load, source="made up"))
        >>> load_dataset("clique-demo")
        (Graph('clique', 4 nodes, 6 edges, 4 features, 2 classes), None)
    """
    return REGISTRY.register(dataset).thing


def all_datasets() -> list[Dataset]:
    """Return all datasets: of this package, registered in this process, and of installed plug-ins."""
    return [entry.thing for entry in REGISTRY.all()]


def outside_datasets() -> tuple[Dataset, ...]:
    """Return datasets registered in this process."""
    return tuple(entry.thing for entry in REGISTRY.outside())


def _check(dataset: Any, where: str) -> None:
    from graphfcl.datasets.dataset import Dataset

    if not isinstance(dataset, Dataset):
        raise InputError(f"{where}: it is not a graphfcl.Dataset: give Dataset(name, title, load, source).")
    check_name(dataset.name, where, "the dataset")
    if not callable(dataset.load):
        raise InputError(
            f"{where}: `load` of the dataset {dataset.name} is not callable: "
            "give a function (folder, options) -> Graph."
        )


REGISTRY: Registry[Dataset, Entry[Dataset]] = Registry(
    "dataset",
    "graphfcl.datasets",
    {name: f"graphfcl.datasets.{place}" for name, place in PLACES.items()},
    Entry,
    _check,
    reference=lambda dataset: reference_of(dataset.load),
)
