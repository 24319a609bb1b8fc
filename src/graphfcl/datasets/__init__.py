"""Names to graphs. A dataset is added by one file that makes a ``Dataset``, and one line in ``registry.py``."""

from typing import TYPE_CHECKING

from graphfcl.lazy_names import lazy_names

if TYPE_CHECKING:
    from graphfcl.datasets.dataset import DATA_VARIABLE, Dataset, data_folder
    from graphfcl.datasets.finding import find_dataset, load_dataset, split_options
    from graphfcl.datasets.registry import all_datasets, register_dataset

# Where each name lives: datasets are named without scipy.
_PLACES = {
    "DATA_VARIABLE": "dataset",
    "Dataset": "dataset",
    "data_folder": "dataset",
    "all_datasets": "registry",
    "register_dataset": "registry",
    "find_dataset": "finding",
    "load_dataset": "finding",
    "split_options": "finding",
}

__all__ = [
    "DATA_VARIABLE",
    "Dataset",
    "all_datasets",
    "data_folder",
    "find_dataset",
    "load_dataset",
    "register_dataset",
    "split_options",
]

__getattr__ = lazy_names(__name__, _PLACES)
