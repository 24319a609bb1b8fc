"""Debian's package graph from ``apt-cache dumpavail``.

A node is a package whose section has at least ``min_packages`` packages, an edge a Depends, Pre-Depends, Recommends,
Suggests or Enhances between two such packages (every alternative counts, virtual packages do not), the features are the
words of the short description, the class is the section.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from scipy import sparse

from graphfcl.errors import InputError
from graphfcl.graph import Graph, build_graph
from scripts.sources.words import word_features

RELATIONS = ("Depends", "Pre-Depends", "Recommends", "Suggests", "Enhances")
PACKAGE_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]*")


def read_packages(dump: str) -> Iterator[dict[str, str]]:
    """The fields of each stanza of Debian's main archive; continued lines are joined."""
    for stanza in re.split(r"\n\s*\n", dump):
        fields: dict[str, str] = {}
        key = ""
        for line in stanza.splitlines():
            if line[:1].isspace():
                fields[key] = f"{fields.get(key, '')} {line.strip()}"
            else:
                key, _, value = line.partition(":")
                fields[key] = value.strip()
        # Packages of other archives that a machine may use have no place under pool/.
        if {"Package", "Section"} <= fields.keys() and fields.get("Filename", "").startswith("pool/"):
            yield fields


def build_debian(dump: str, *, min_packages: int = 100, min_nodes: int = 5) -> Graph:
    """The graph of a dump."""
    packages = {fields["Package"]: fields for fields in read_packages(dump)}
    sizes = Counter(fields["Section"] for fields in packages.values())
    names = sorted(name for name, fields in packages.items() if sizes[fields["Section"]] >= min_packages)
    if not names:
        raise InputError("the dump has no section with enough packages: run apt-get update, then apt-cache dumpavail.")
    number = {name: position for position, name in enumerate(names)}
    edges = {
        (number[name], number[other])
        for name in names
        for relation in RELATIONS
        for other in _related(packages[name].get(relation, ""))
        if other in number and other != name
    }
    ends = np.array(sorted(edges), dtype=np.int64).reshape(-1, 2)
    adjacency = sparse.coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(len(names), len(names)))
    features, words = word_features([packages[name].get("Description", "") for name in names], min_nodes)
    graph = build_graph(
        adjacency,
        features,
        np.array([packages[name]["Section"] for name in names]),
        node_ids=names,
        feature_names=words,
        name="debian",
        where="the dump",
    )
    return replace(graph, column_min_nodes=min_nodes)


def _related(relation: str) -> Iterator[str]:
    for alternative in re.split(r"[,|]", relation):
        match = PACKAGE_NAME.match(alternative.strip())
        if match:
            yield match[0]
