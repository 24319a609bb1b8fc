"""The graph of the README and the tutorial: products of a small made-up shop, in two CSV tables."""

from importlib.resources import as_file, files
from pathlib import Path

from graphfcl.datasets.dataset import Dataset
from graphfcl.graph import Graph, TableColumns

COLUMNS = TableColumns(id="sku", label="category", text="title")


def _load(_: Path, __: dict[str, str]) -> Graph:
    from graphfcl.graph import read_tables  # imports pyarrow

    with as_file(files("graphfcl.datasets") / "files" / "shop-demo") as folder:
        return read_tables(folder, COLUMNS)


SHOP_DEMO = Dataset(
    "shop-demo",
    "A small shop: 400 products with titles, bought together; one of its eight categories has no label yet",
    _load,
    "shipped with graphfcl; made up by the script of the tutorial",
)
