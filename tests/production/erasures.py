"""A model of people, and what its files hold of them."""

import zlib
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl import Graph, ModelFolder
from graphfcl.graph.ids import text_array
from tests.production.crafting import CraftedDatabase
from tests.production.models import everything, small_graph


@cache
def people() -> Graph:
    """The small graph, with ids that stand in no other text and numbers that are in no other row."""
    graph = small_graph()
    features = graph.features.copy()
    features.data *= np.repeat(1 + np.arange(graph.node_count) / 1024, np.diff(features.indptr)).astype(np.float32)
    ids = text_array([f"person-{number:04d}@home" for number in graph.node_ids.tolist()])
    return replace(graph, node_ids=ids, features=features)


def members(name: str) -> list[str]:
    graph = people()
    return graph.node_ids[graph.labels == graph.class_number(name)].tolist()


EIGHT, NINE = members("class-08"), members("class-09")
GONE = EIGHT[0]  # was taught, replaced and removed again
TRAINED = members("class-00")[0]


def holding(folder: Path, wanted: bytes) -> set[str]:
    """What holds some bytes: kinds of rows, descriptions unpacked; and names of files, whatever of them is in use."""
    places = {path.name for path in folder.rglob("*") if path.is_file() and wanted in path.read_bytes()}
    for name, prefix in (("model.sqlite", ""), ("cache.sqlite", "cache ")):
        if not (folder / name).exists() or not (folder / name).stat().st_size:
            continue
        database = CraftedDatabase(folder / name)
        for kind, content in database.query("SELECT kind, content FROM document"):
            places |= {prefix + kind} if wanted in content else set()
        for size, data in database.query("SELECT size, data FROM chunk"):
            data = data if len(data) == size else zlib.decompress(data)
            places |= {prefix + "chunk"} if wanted in data else set()
    return places - {"model.sqlite", "cache.sqlite"} if places - {"model.sqlite", "cache.sqlite"} else places


def stored_as(folder: Path, wanted: bytes) -> list[bytes]:
    """Some bytes out of every chunk that holds these, as they lie in the file, compressed or not.

    Without patterns of regular content, such as ids that follow each other, which other chunks have, too.
    """
    rows = CraftedDatabase(folder / "model.sqlite").query("SELECT size, data FROM chunk")
    holds = [data for size, data in rows if wanted in (data if len(data) == size else zlib.decompress(data))]
    traces = [data[place : place + 24] for data in holds for place in range(40, len(data) - 24, 500)]
    return [trace for trace in traces if len(set(trace)) > 18]


def in_a_file(folder: Path, traces: list[bytes]) -> list[bytes]:
    """Those that are in any file, in use or not."""
    contents = list(everything(folder).values())
    return [trace for trace in traces if any(trace in content for content in contents)]


def row_of(node: str) -> bytes:
    """The features of a node as an array of them holds them."""
    graph = people()
    row = graph.node_ids.tolist().index(node)
    return graph.features[[row]].data.astype("<f4").tobytes()


def rows(folder: Path) -> list[Any]:
    return CraftedDatabase(folder / "model.sqlite").query("SELECT * FROM document ORDER BY kind, number")


def told(folder: Path) -> list[tuple[int, str]]:
    return [(entry["version"], entry["what"]) for entry in ModelFolder(folder).history()]
