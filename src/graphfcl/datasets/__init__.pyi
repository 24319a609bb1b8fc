"""The public names of ``graphfcl.datasets``: type checkers and the package itself read this list."""

from graphfcl.datasets.dataset import DATA_VARIABLE as DATA_VARIABLE, Dataset as Dataset, data_folder as data_folder
from graphfcl.datasets.finding import (
    columns_from as columns_from,
    find_dataset as find_dataset,
    graph_of_tables as graph_of_tables,
    load_dataset as load_dataset,
    option_pairs as option_pairs,
    split_options as split_options,
)
from graphfcl.datasets.registry import (
    all_datasets as all_datasets,
    outside_datasets as outside_datasets,
    register_dataset as register_dataset,
)

__all__: list[str]
