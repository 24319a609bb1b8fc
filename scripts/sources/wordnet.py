"""WordNet's synset graph from the data files of Debian's package ``wordnet-base``.

A node is a synset whose lexicographer file has at least ``min_synsets`` synsets, an edge a pointer between two such
synsets, the features are the words of its gloss without the quoted examples, the class is the lexicographer file.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy import sparse

from graphfcl.errors import InputError
from graphfcl.graph import Graph, build_graph
from scripts.sources.words import word_features

FOLDER = Path("/usr/share/wordnet")
PARTS = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
# In the order of their numbers, see lexnames(5WN).
LEXICOGRAPHER_FILES = [
    "adj.all",
    "adj.pert",
    "adv.all",
    "noun.Tops",
    "noun.act",
    "noun.animal",
    "noun.artifact",
    "noun.attribute",
    "noun.body",
    "noun.cognition",
    "noun.communication",
    "noun.event",
    "noun.feeling",
    "noun.food",
    "noun.group",
    "noun.location",
    "noun.motive",
    "noun.object",
    "noun.person",
    "noun.phenomenon",
    "noun.plant",
    "noun.possession",
    "noun.process",
    "noun.quantity",
    "noun.relation",
    "noun.shape",
    "noun.state",
    "noun.substance",
    "noun.time",
    "verb.body",
    "verb.change",
    "verb.cognition",
    "verb.communication",
    "verb.competition",
    "verb.consumption",
    "verb.contact",
    "verb.creation",
    "verb.emotion",
    "verb.motion",
    "verb.perception",
    "verb.possession",
    "verb.social",
    "verb.stative",
    "verb.weather",
    "adj.ppl",
]


@dataclass(frozen=True)
class Synset:
    """``key`` is the part of speech and the offset, e.g. n00001740; ``word`` its first word."""

    key: str
    word: str
    lexicographer_file: str
    pointers: tuple[str, ...]
    gloss: str


def read_synsets(text: str, part: str) -> Iterator[Synset]:
    """The synsets of one data file; see wndb(5WN)."""
    for line in text.splitlines():
        if line.startswith(" "):
            continue
        data, _, gloss = line.partition(" | ")
        fields = data.split()
        words = int(fields[3], 16)
        first_pointer = 4 + 2 * words
        count = int(fields[first_pointer])
        pointers = fields[first_pointer + 1 : first_pointer + 1 + 4 * count]
        yield Synset(
            key=part + fields[0],
            word=fields[4],
            lexicographer_file=LEXICOGRAPHER_FILES[int(fields[1])],
            pointers=tuple(
                pos.replace("s", "a") + offset for offset, pos in zip(pointers[1::4], pointers[2::4], strict=True)
            ),
            gloss=gloss.partition('"')[0],
        )


def build_wordnet(folder: Path = FOLDER, *, min_synsets: int = 100, min_nodes: int = 5) -> Graph:
    """The graph of the data files in a folder."""
    missing = [part for part in PARTS if not (folder / f"data.{part}").exists()]
    if missing:
        raise InputError(f"{folder} has no data.{missing[0]}: install Debian's package wordnet-base.")
    synsets = [
        synset
        for part, letter in PARTS.items()
        for synset in read_synsets((folder / f"data.{part}").read_text(encoding="utf-8"), letter)
    ]
    sizes = Counter(synset.lexicographer_file for synset in synsets)
    synsets = [synset for synset in synsets if sizes[synset.lexicographer_file] >= min_synsets]
    number = {synset.key: position for position, synset in enumerate(synsets)}
    edges = {(number[synset.key], number[other]) for synset in synsets for other in synset.pointers if other in number}
    ends = np.array(sorted(edges), dtype=np.int64).reshape(-1, 2)
    adjacency = sparse.coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(len(synsets), len(synsets)))
    features, words = word_features([synset.gloss for synset in synsets], min_nodes)
    graph = build_graph(
        adjacency,
        features,
        np.array([synset.lexicographer_file for synset in synsets]),
        node_ids=[synset.key for synset in synsets],
        feature_names=words,
        name="wordnet",
        where=str(folder),
    )
    return replace(graph, column_min_nodes=min_nodes)
