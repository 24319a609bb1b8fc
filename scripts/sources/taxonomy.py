"""A development graph that resembles a taxonomy such as WordNet's nouns; never a graph of the benchmark.

python -m scripts.sources.taxonomy OUT.npz [SEED]: the same seed gives the same graph. A node has a parent of its class:
drawn uniformly, or the parent of such a node, which favours nodes with many children. A share of the nodes, the
founders, have a parent of any class and begin a subtree there. Sizes of classes follow a power law. The features are
words: common ones by Zipf's law, others of the topics of the node, of those above it and of its class. The constants
were set until SGC-ridge ended between 50 and 70 % balanced accuracy on the stream of seed 0; no other method had a say.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy import sparse

from graphfcl.graph import Graph, build_graph, write_npz
from scripts.sources.words import word_features


@dataclass(frozen=True)
class Taxonomy:
    """Sizes and shares of the tree.

    smallest, skew: nodes of the last class, and of the first over the last. founders: share of nodes whose parent is of
    any class. siblings: share of the others that are drawn as siblings. links: further links for each tree edge.
    vocabulary, topic: words in all, and of one topic. fewest, most: words drawn for a node. common: share of these
    drawn by Zipf's law. climb: probability that a topic word comes from one more step above.
    """

    classes: int = 34
    smallest: int = 65
    skew: float = 100.0
    founders: float = 0.1
    siblings: float = 0.6
    links: float = 0.05
    vocabulary: int = 4000
    topic: int = 25
    fewest: int = 5
    most: int = 15
    common: float = 0.6
    climb: float = 0.6

    def sizes(self) -> np.ndarray:
        """(classes,) nodes of each class, the largest first."""
        exponent = np.log(self.skew) / np.log(max(2, self.classes))
        ranks = np.arange(1, self.classes + 1)
        sizes: np.ndarray = np.ceil(self.smallest * (ranks / self.classes) ** -exponent).astype(np.int64)
        return sizes


def grow(labels: Sequence[int], settings: Taxonomy, random: np.random.Generator) -> tuple[list[int], list[int]]:
    """The parent of each node, -1 for the first, and the topic above its own: the parent's, or for founders -1 - class.

    labels: (n,) classes in the order in which the nodes arrive.
    """
    parents: list[int] = []
    above: list[int] = []
    members: list[list[int]] = [[] for _ in range(settings.classes)]
    for node, label in enumerate(labels):
        same = members[label]
        if not same or random.random() < settings.founders:
            parents.append(int(random.integers(node)) if node else -1)
            above.append(-1 - label)
        else:
            parent = same[random.integers(len(same))]
            if random.random() < settings.siblings and above[parent] >= 0:
                parent = parents[parent]
            parents.append(parent)
            above.append(parent)
        same.append(node)
    return parents, above


def draw_texts(above: Sequence[int], settings: Taxonomy, random: np.random.Generator) -> list[str]:
    """The words of each node, with spaces between them; ``above`` as :func:`grow` gives it."""
    count = len(above)
    # Topics of the nodes, and behind them, from the last class to the first, those of the classes, which end a climb.
    steps = np.concatenate([np.array(above) % (count + settings.classes), count + np.arange(settings.classes)])
    topics = random.integers(settings.vocabulary, size=(count + settings.classes, settings.topic))
    zipf = 1 / np.arange(1, settings.vocabulary + 1)
    lengths = random.integers(settings.fewest, settings.most, size=count, endpoint=True)
    topic = np.repeat(np.arange(count), lengths)
    climbing = np.ones(topic.size, dtype=bool)
    while climbing.any():
        climbing &= random.random(topic.size) < settings.climb
        topic[climbing] = steps[topic[climbing]]
    words = topics[topic, random.integers(settings.topic, size=topic.size)]
    common = random.random(topic.size) < settings.common
    words[common] = random.choice(settings.vocabulary, size=int(common.sum()), p=zipf / zipf.sum())
    return [" ".join(f"w{word}" for word in each) for each in np.split(words, np.cumsum(lengths)[:-1])]


def build_taxonomy(seed: int = 0, *, settings: Taxonomy | None = None, min_nodes: int = 5) -> Graph:
    """The graph of a seed."""
    settings = settings or Taxonomy()
    random = np.random.default_rng(seed)
    labels = random.permutation(np.repeat(np.arange(settings.classes), settings.sizes()))
    parents, above = grow(labels.tolist(), settings, random)
    count = labels.size
    links = random.integers(count, size=(2, round(settings.links * (count - 1))))
    rows, columns = np.concatenate([[np.arange(1, count), parents[1:]], links[:, links[0] != links[1]]], axis=1)
    adjacency = sparse.coo_array((np.ones(rows.size), (rows, columns)), shape=(count, count))
    features, words = word_features(draw_texts(above, settings, random), min_nodes)
    names = [f"subtree{label:02}" for label in range(settings.classes)]
    graph = build_graph(
        adjacency, features, labels, class_names=names, feature_names=words, name="tree", where="the tree"
    )
    return replace(graph, column_min_nodes=min_nodes)


def main(path: Path, seed: int = 0) -> None:
    graph = build_taxonomy(seed)
    write_npz(graph, path)
    print(f"{graph!r}, same-class edges {graph.same_class_share:.3f}, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: taxonomy.py OUT.npz [SEED]")
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
