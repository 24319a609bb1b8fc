"""Graphs in one ``.npz`` file with the sparse graph layout: graphs in this package, and public research graphs.

``scripts/build_embedded.py`` rebuilds the files in this package.
"""

from importlib.resources import as_file, files
from pathlib import Path

from graphfcl.datasets.dataset import Dataset
from graphfcl.graph import Graph, read_npz
from graphfcl.stream import Protocol


def _shipped(name: str, title: str, source: str, protocol: Protocol) -> Dataset:
    def load(_: Path, __: dict[str, str]) -> Graph:
        with as_file(files("graphfcl.datasets") / "files" / f"{name}.npz") as path:
            return read_npz(path, name=name)

    return Dataset(name, title, load, source, protocol)


def _public(name: str, title: str, source: str, protocol: Protocol | None) -> Dataset:
    file = f"{name.replace('-', '_')}.npz"
    return Dataset(name, title, lambda folder, _: read_npz(folder / file, name=name), source, protocol, (file,))


GRAPH_DATA = "the public repository EdisonLeeeee/GraphData"
DEBIAN = _shipped(
    "debian",
    "Debian's packages by section, linked by their dependencies, words of their descriptions",
    "shipped with graphfcl; built from `apt-cache dumpavail` of bookworm (arm64) by scripts/build_embedded.py",
    Protocol(base=15, pseudo_novel=12, novel=24, way=2, shot=5),
)
WORDNET = _shipped(
    "wordnet",
    "WordNet's synsets by lexicographer file, linked by their pointers, words of their glosses",
    "shipped with graphfcl; built from Debian's package wordnet-base (WordNet 3.0) by scripts/build_embedded.py",
    Protocol(base=14, pseudo_novel=9, novel=18, way=2, shot=5),
)
CORA_TOPICS = _public(
    "cora-topics",
    "Cora papers by 70 leaf topics, words of their titles",
    "the public repository APEX-WSU/CoRA, converted to the sparse graph layout",
    Protocol(base=20, pseudo_novel=20, novel=None, way=2, shot=5, min_class_size=50),
)
COAUTHOR_CS = _public(
    "coauthor-cs",
    "Computer scientists by field, linked by common papers",
    GRAPH_DATA,
    Protocol(base=4, pseudo_novel=3, novel=8, way=1, shot=5),
)
AMAZON_COMPUTERS = _public(
    "amazon-computers",
    "Amazon products of Computers, bought together",
    GRAPH_DATA,
    Protocol(base=3, pseudo_novel=2, novel=5, way=1, shot=5),
)
CORA_ML = _public("cora-ml", "Machine-learning papers of Cora, linked by citations", GRAPH_DATA, None)
