"""The parts of a running service, and what every route needs of them."""

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_to_bytes

from fastapi import Response

from graphfcl.graph.ids import NODE_ID
from graphfcl.service.background import Background
from graphfcl.service.limits import Limits
from graphfcl.service.metrics import Metrics
from graphfcl.service.problems import Problem, shown
from graphfcl.service.security import Rules
from graphfcl.service.snapshots import Snapshot, Snapshots
from graphfcl.service.writer import Writer


@dataclass(frozen=True, eq=False)
class Service:
    """Snapshots for readers, one writer, what is computed beside, figures, limits and rules."""

    snapshots: Snapshots
    writer: Writer
    background: Background
    metrics: Metrics
    limits: Limits
    rules: Rules
    _changes: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "graphfcl-write"))
    _waiting: list[int] = field(default_factory=lambda: [0])

    @property
    def waiting(self) -> int:
        """How many changes are made or wait to be."""
        return self._waiting[0]

    def not_ready(self) -> Problem:
        """What is wrong with the folder; without its path where whoever asks has shown no token."""
        said = self.snapshots.trouble or ""
        if self.rules.reads:
            said = "the model folder is damaged or cannot be read: /v1/model says more to whoever has the token."
        version = self.snapshots.current.version
        more = f"Reads go on from version {version}, changes are refused."
        return Problem(503, f"{said} {more}", version=version, warning=said)

    async def changing(self, change: Callable[[], dict[str, Any]]) -> Response:
        """Make a change in the one thread that writes; the others wait their turn, and not too many of them."""
        if self._waiting[0] >= self.limits.waiting:
            raise Problem(
                503,
                f"{self._waiting[0]} changes wait already: try again in a few seconds; nothing was changed.",
                headers={"Retry-After": "5"},
            )
        self._waiting[0] += 1
        try:
            answer = await asyncio.get_running_loop().run_in_executor(self._changes, change)
        finally:
            self._waiting[0] -= 1
        self.background.changed()
        return answered(answer, answer["version"])

    def close(self) -> None:
        """Wait for the change in flight, and end."""
        self._changes.shutdown(wait=True)
        self.background.stop()


def answered(values: dict[str, Any], version: int) -> Response:
    """JSON with the version that it is of."""
    content = json.dumps({"version": version, **values}, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    headers = {"ETag": f'"{version}"', "Cache-Control": "no-store"}
    return Response(content.encode(), media_type="application/json", headers=headers)


def sent_text(part: str) -> str:
    """A part of an address as it was meant: routes get it as it was sent."""
    try:
        return unquote_to_bytes(part).decode()
    except UnicodeDecodeError as error:
        raise Problem(400, "the address holds bytes that are no UTF-8: encode the id as UTF-8, then as %XX.") from error


def row_of(snapshot: Snapshot, node: Any) -> int:
    """The row of an id that must be there."""
    if isinstance(node, str) and len(node) > NODE_ID.longest:
        raise Problem(404, f"node {shown(node)} is not in the graph: an id has at most {NODE_ID.longest:,} characters.")
    row = snapshot.row_of(node)
    if row < 0:
        raise Problem(404, f"node {shown(node)} is not in the graph: /v1/nodes?q= finds ids.", version=snapshot.version)
    return row


def refuse_strange(snapshot: Snapshot, nodes: list[Any]) -> None:
    """Refuse ids that are not in the graph, and name the first."""
    rows = snapshot.graph.rows_of_ids(nodes).tolist()
    strange = [node for node, row in zip(nodes, rows, strict=True) if row < 0]
    if strange:
        more = f" (and {len(strange) - 1} more)" if len(strange) > 1 else ""
        raise Problem(
            404,
            f"node {shown(strange[0])}{more} is not in the graph: /v1/nodes?q= finds ids; nothing was changed.",
            version=snapshot.version,
        )


def refuse_many(count: int, limit: int, what: str) -> None:
    """Refuse more of something than one request may bring."""
    if count > limit:
        raise Problem(413, f"{count:,} {what}, at most {limit:,} fit into one request: send several.")
