"""Graphs that come with the package; ``scripts/build_embedded.py`` rebuilds them."""

from importlib.resources import as_file, files
from pathlib import Path

from graphfcl.datasets.dataset import Dataset
from graphfcl.graph import Graph, read_npz
from graphfcl.stream import Protocol


def _dataset(name: str, title: str, source: str, protocol: Protocol) -> Dataset:
    def load(_: Path | None, __: dict[str, str]) -> Graph:
        with as_file(files("graphfcl.datasets") / "files" / f"{name}.npz") as path:
            return read_npz(path, name=name)

    return Dataset(name, title, load, source, protocol)


DEBIAN = _dataset(
    "debian",
    "Debian's packages by section, linked by their dependencies, words of their descriptions",
    "shipped with graphfcl; built from `apt-cache dumpavail` of bookworm (arm64) by scripts/build_embedded.py",
    Protocol(base=15, pseudo_novel=12, novel=24, way=2, shot=5),
)
WORDNET = _dataset(
    "wordnet",
    "WordNet's synsets by lexicographer file, linked by their pointers, words of their glosses",
    "shipped with graphfcl; built from Debian's package wordnet-base (WordNet 3.0) by scripts/build_embedded.py",
    Protocol(base=14, pseudo_novel=9, novel=18, way=2, shot=5),
)
