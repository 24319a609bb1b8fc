"""Save and load streams as JSON with the user's node ids, so that a stream is the same on every machine.

A file contains protocol, seed, classes, node roles, tasks and queries. Everything that follows from these and the
graph, such as TF-IDF weights and the numbers of nodes, is computed again.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.errors import InputError, in_one_line, quoted
from graphfcl.graph.interfaces import AnyGraph
from graphfcl.runtime.files import canonical_json, read_bytes, sha256_of, write_bytes
from graphfcl.stream.protocol import Protocol, refuse_other_version
from graphfcl.stream.split import Role, Split
from graphfcl.stream.stream import Stream, fit_view

FORMAT = "graphfcl stream"
VERSION = 1


def save_stream(stream: Stream, path: str | Path) -> None:
    """Save a stream as JSON: protocol, seed, classes, node roles, tasks, queries, and the fingerprint of the graph.

    Args:
        stream: The stream.
        path: File to write. An existing file is replaced.

    Raises:
        InputError: If the file cannot be written.

    Examples:
        >>> from graphfcl import load_dataset, load_stream, make_stream, save_stream
        >>> graph, _ = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=30")
        >>> stream = make_stream(graph, way=1, shot=2, seed=1)
        >>> save_stream(stream, "stream.json")
        >>> load_stream("stream.json", graph).classes == stream.classes
        True
    """
    content = stream_as_json(stream)
    text = json.dumps(
        {**content, "sha256": sha256_of(canonical_json(content, ascii_only=False))}, ensure_ascii=False, indent=1
    )
    write_bytes(path, text.encode())


def stream_as_json(stream: Stream) -> dict[str, Any]:
    graph, split = stream.graph, stream.split
    columns = split.columns_of_nodes(graph)
    classes = []
    for column, name in enumerate(stream.classes):
        role = "base" if column in split.base_columns else "novel"
        nodes = {
            part.name.lower(): graph.node_ids[(columns == column) & (split.roles == part)].tolist()
            for part in Role
            if part is not Role.NONE
        }
        classes.append(
            {
                "name": name,
                "role": "pseudo-novel" if column in split.pseudo_novel_columns else role,
                "session": int(split.session_of_column[column]),
                "nodes": {part: ids for part, ids in nodes.items() if ids},
            }
        )
    return {
        "format": FORMAT,
        "version": VERSION,
        "graph": {"name": graph.name, "nodes": graph.node_count, "sha256": graph.sha256},
        "seed": stream.seed,
        "protocol": stream.protocol.as_json(),
        "protocol_hash": stream.protocol.hash,
        "classes": classes,
        "pseudo_novel_tasks": [list(task) for task in split.pseudo_novel_tasks],
        "queries": [graph.node_ids[nodes].tolist() for nodes in split.queries],
        "left_out": split.left_out,
    }


def stream_hash(stream: Stream) -> str:
    """Return the SHA-256 of the draw (classes, role and number of each node) and of the rules that it does not show.

    Streams with the same hash have the same sessions, on every machine.
    """
    content = stream_as_json(stream)
    return _hash(stream, content, ("protocol_version", "name", "track", "way", "shot"))


def session_zero_hash(stream: Stream) -> str:
    """Return the SHA-256 of the draw of session 0, with its test nodes, without K.

    Streams with different novel sessions may have the same hash.
    """
    content = stream_as_json(stream)
    first = {
        "classes": [each for each in content["classes"] if each["session"] == 0],
        "queries": content["queries"][:1],
    }
    return _hash(stream, {**content, **first}, ("protocol_version", "name", "track", "way"))


def _hash(stream: Stream, content: dict[str, Any], rules: tuple[str, ...]) -> str:
    """Hash the draw and the named ``rules``, which do not show in the draw.

    Of the optional rules, only those that are not at their default are hashed.
    """
    drawn = {key: content[key] for key in ("seed", "classes", "pseudo_novel_tasks", "queries")}
    drawn["graph"] = stream.graph.sha256
    drawn["protocol"] = {name: content["protocol"][name] for name in rules}
    drawn["protocol"] |= {} if stream.protocol.standardise else {"standardise": False}
    if stream.graph.column_min_nodes > 1:
        drawn["protocol"]["column_min_nodes"] = stream.graph.column_min_nodes
    drawn["numbers"] = sha256_of(stream.node_of_number.astype("<i8").tobytes())
    return sha256_of(canonical_json(drawn, ascii_only=False))


def load_stream(path: str | Path, graph: AnyGraph) -> Stream:
    """Load a stream that :func:`save_stream` saved.

    Args:
        path: File with the stream.
        graph: Graph that the stream was made of.

    Returns:
        The stream.

    Raises:
        InputError: If the file is damaged, or belongs to another graph or another protocol version.

    Examples:
        >>> from graphfcl import load_dataset, load_stream, make_stream, save_stream
        >>> graph, _ = load_dataset("synthetic:nodes=200,edges=800,classes=6,features=30")
        >>> save_stream(make_stream(graph, way=1, shot=2), "stream.json")
        >>> load_stream("stream.json", graph)
        Stream('synthetic', seed 0, strict/transductive, 2 base + 2 pseudo-novel classes, 2 sessions of 1-way 2-shot)
    """
    content = _read_checked(path)
    try:
        _refuse_other_graph(path, content["graph"], graph)
        if type(content["seed"]) is not int:
            raise _Unfit("its seed is not a whole number")
        protocol = Protocol.from_json(content["protocol"])
        split = _split_of(content, graph)
        return Stream(graph, protocol, content["seed"], split, fit_view(graph, protocol, split))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        reason = str(error) if isinstance(error, _Unfit) else in_one_line(error)
        raise InputError(f"{path} is not a complete stream ({reason}): make it again from its seed.") from error


def _refuse_other_graph(path: str | Path, made_for: dict[str, Any], graph: AnyGraph) -> None:
    if made_for["sha256"] != graph.sha256:
        raise InputError(
            f"{path} was made for another graph ({made_for['name']!r}, {made_for['nodes']:,} nodes, SHA-256 "
            f"{made_for['sha256'][:12]}…) than this one ({graph.name!r}, {graph.node_count:,} nodes, "
            f"{graph.sha256[:12]}…): load that graph, or make a new stream."
        )


class _Unfit(ValueError):
    """The content of a file is inconsistent; the message says how."""


def _split_of(content: dict[str, Any], graph: AnyGraph) -> Split:
    classes = content["classes"]
    roles = np.zeros(graph.node_count, dtype=np.int8)
    for entry in classes:
        for part, ids in entry["nodes"].items():
            roles[_nodes_of(ids, graph)] = Role[part.upper()]
    return Split(
        classes=tuple(graph.class_names.index(entry["name"]) for entry in classes),
        base_count=sum(entry["role"] == "base" for entry in classes),
        pseudo_novel_count=sum(entry["role"] == "pseudo-novel" for entry in classes),
        session_of_column=np.array([entry["session"] for entry in classes], dtype=np.int64),
        pseudo_novel_tasks=tuple(tuple(task) for task in content["pseudo_novel_tasks"]),
        roles=roles,
        queries=tuple(_nodes_of(ids, graph) for ids in content["queries"]),
        left_out=content["left_out"],
    )


def _nodes_of(ids: list[Any], graph: AnyGraph) -> np.ndarray:
    nodes = graph.nodes_of(ids)
    if (nodes < 0).any():
        raise _Unfit(f"the graph has no node {quoted(ids[int(np.flatnonzero(nodes < 0)[0])])}")
    return nodes


def _read_checked(path: str | Path) -> dict[str, Any]:
    raw = read_bytes(path, "the stream")
    try:
        content = json.loads(raw)
    except ValueError as error:
        raise InputError(
            f"{path} is not a saved stream or is cut short: make it again with `graphfcl stream`."
        ) from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"{path} is not a saved stream: make one with `graphfcl stream NAME --out FILE`.")
    if content.get("version") != VERSION:
        raise InputError(
            f"{path} has stream format {content.get('version')}, this graphfcl reads {VERSION}: update it."
        )
    checksum = content.pop("sha256", None)
    try:
        actual = sha256_of(canonical_json(content, ascii_only=False))
    except UnicodeEncodeError:  # half of a surrogate pair, which save_stream never writes
        actual = None
    if actual is None or checksum != actual:
        raise InputError(f"{path} was changed or damaged (its checksum does not fit): make it again from its seed.")
    protocol = content.get("protocol")
    if isinstance(protocol, dict):
        refuse_other_version(protocol.get("protocol_version"), str(path), "draw the stream again from its seed")
    return content
