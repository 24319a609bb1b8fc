"""The parts of a running service, and helpers that all routes use."""

import asyncio
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import unquote_to_bytes

import numpy as np
from fastapi import Response

from graphfcl.errors import quoted
from graphfcl.service.background import Background
from graphfcl.service.metrics import Metrics
from graphfcl.service.problems import Problem
from graphfcl.service.representation import tag_of
from graphfcl.service.security import Limits, Rules
from graphfcl.service.snapshots import Snapshot
from graphfcl.service.writer import Apply, ChangeRequest, Writer

Item = TypeVar("Item")


@dataclass(eq=False)
class Service:
    """The writer, background computations, metrics, limits and access rules of a running service."""

    writer: Writer
    background: Background
    metrics: Metrics
    limits: Limits
    rules: Rules
    waiting: int = 0  # changes that are running or waiting
    _changes: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "graphfcl-write"))

    def ready(self, values: dict[str, Any]) -> Response:
        """Answer if the folder is complete, or raise a problem. If reads need the token, it hides the path."""
        version, warning = self.writer.current.version, self.writer.trouble
        if warning is None:
            return answered(values, version)
        if self.rules.reads:
            warning = "the model folder is damaged or cannot be read: read /v1/model with the token for details."
        more = f"Reads continue from version {version}, changes are refused."
        raise Problem(503, f"{warning} {more}", "damaged-folder", version=version, warning=warning)

    async def change(self, request: ChangeRequest, apply: Apply, ids: Sequence[Any] = ()) -> Response:
        """Change the model and answer with the new version. Some of the ``ids`` of the batch may be left out."""

        def change() -> dict[str, Any]:
            answer = self.writer.change(request, apply)
            places = answer.get("left_out")  # the folder must not store ids of unknown nodes
            return answer if places is None else {**answer, "left_out": left_out_cards(ids, places)}

        return await self.run_change(change)

    async def run_change(self, change: Callable[[], dict[str, Any]]) -> Response:
        """Run a change in the only thread that writes. A limited number of changes may wait for it."""
        if self.waiting >= self.limits.waiting:
            raise Problem(
                503,
                f"{self.waiting} changes are waiting: try again in a few seconds; nothing was changed.",
                "busy",
                headers={"Retry-After": "5"},
            )
        self.waiting += 1
        try:
            answer = await asyncio.get_running_loop().run_in_executor(self._changes, change)
        finally:
            self.waiting -= 1
        self.background.changed()
        return answered(answer, answer["version"])

    def close(self) -> None:
        """Finish the running change and stop."""
        self._changes.shutdown(wait=True)
        self.background.stop()


def answered(values: dict[str, Any], version: int) -> Response:
    """Make a JSON answer with the version that it describes."""
    text = json.dumps({"version": version, **values}, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    content = text.encode()
    # Answers of one version may differ, for example while something is being computed.
    headers = {"ETag": f'"{version}-{tag_of(content)}"', "Cache-Control": "no-store"}
    return Response(content, media_type="application/json", headers=headers)


def sent_text(part: str) -> str:
    """Decode a part of an address, which routes receive percent-encoded."""
    try:
        return unquote_to_bytes(part).decode()
    except UnicodeDecodeError as error:
        raise Problem(
            400, "the address contains bytes that are not UTF-8: encode the id as UTF-8, then as %XX."
        ) from error


def require_rows(snapshot: Snapshot, nodes: Sequence[Any]) -> list[int]:
    """Return the rows of nodes; raise a problem if a node is not in the graph."""
    rows: list[int] = snapshot.graph.rows_of_ids(nodes).tolist()
    missing = [node for node, row in zip(nodes, rows, strict=True) if row < 0]
    if missing:
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        raise Problem(
            404,
            f"node {quoted(missing[0])}{more} is not in the graph: /v1/nodes?q= finds ids; nothing was changed.",
            "unknown-node",
            version=snapshot.version,
        )
    return rows


def unknown_places(snapshot: Snapshot, ids: Sequence[Any], on_unknown: str) -> list[int]:
    """Return the positions of unknown nodes in a batch; raise a problem unless ``on_unknown`` is ``skip``."""
    if on_unknown == "refuse":
        require_rows(snapshot, ids)
        return []
    return np.flatnonzero(snapshot.graph.rows_of_ids(ids) < 0).tolist()


def without(items: Sequence[Item], places: Sequence[int]) -> list[Item]:
    """Return a batch without the items at some positions."""
    left_out = set(places)
    return [item for place, item in enumerate(items) if place not in left_out]


def left_out_cards(ids: Sequence[Any], places: Sequence[int]) -> list[dict[str, Any]]:
    """Return the nodes at some positions of a batch, each once, and why they were left out."""
    nodes = dict.fromkeys(str(ids[place]) for place in places)
    return [{"id": node, "kind": "unknown-node", "why": "the node is not in the graph"} for node in nodes]


def refuse_many(count: int, limit: int, what: str) -> None:
    """Raise a problem if a request contains too many items."""
    if count > limit:
        raise Problem(413, f"{count:,} {what}, at most {limit:,} fit into one request: send several.")
