"""Public research graphs that come as one ``.npz`` file in the sparse graph layout."""

from pathlib import Path

from graphfcl.datasets.dataset import Dataset, require_files
from graphfcl.graph import Graph, read_npz
from graphfcl.stream import Protocol


def _dataset(name: str, title: str, file: str, source: str, protocol: Protocol | None) -> Dataset:
    def load(folder: Path | None, _: dict[str, str]) -> Graph:
        return read_npz(require_files(dataset, folder) / file, name=name)

    dataset = Dataset(name, title, load, source, protocol, (file,))
    return dataset


CORA_TOPICS = _dataset(
    "cora-topics",
    "Cora papers by 70 leaf topics, words of their titles",
    "cora_topics.npz",
    "the public repository APEX-WSU/CoRA, converted to the sparse graph layout",
    Protocol(base=20, pseudo_novel=20, novel=None, way=2, shot=5, min_class_size=50),
)
COAUTHOR_CS = _dataset(
    "coauthor-cs",
    "Computer scientists by field, linked by common papers",
    "coauthor_cs.npz",
    "the public repository EdisonLeeeee/GraphData",
    Protocol(base=4, pseudo_novel=3, novel=8, way=1, shot=5),
)
AMAZON_COMPUTERS = _dataset(
    "amazon-computers",
    "Amazon products of Computers, bought together",
    "amazon_computers.npz",
    "the public repository EdisonLeeeee/GraphData",
    Protocol(base=3, pseudo_novel=2, novel=5, way=1, shot=5),
)
CORA_ML = _dataset(
    "cora-ml",
    "Machine-learning papers of Cora, linked by citations",
    "cora_ml.npz",
    "the public repository EdisonLeeeee/GraphData",
    None,
)
