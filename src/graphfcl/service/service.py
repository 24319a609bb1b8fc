"""What every route needs: the parts of a running service, bodies of requests, answers and refusals."""

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Annotated, Any
from urllib.parse import unquote_to_bytes

from fastapi import Response
from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr

from graphfcl.graph.ids import CLASS_NAME, NODE_ID
from graphfcl.service.background import Background
from graphfcl.service.metrics import Metrics
from graphfcl.service.problems import Problem, shown
from graphfcl.service.security import Limits, Rules
from graphfcl.service.snapshots import Snapshot
from graphfcl.service.writer import Apply, ChangeRequest, Writer

Whole = Annotated[StrictInt, Field(ge=-(2**63), lt=2**63)]
Id = Annotated[StrictStr, Field(max_length=NODE_ID.longest)] | Whole
ClassName = Annotated[StrictStr, Field(min_length=1, max_length=CLASS_NAME.longest)] | Whole
By = Annotated[StrictStr, Field(max_length=200)]
LARGEST = 1e15  # squares of larger numbers overflow 32-bit floats
Finite = Annotated[float, Field(allow_inf_nan=False, ge=-LARGEST, le=LARGEST)]


class Body(BaseModel):
    """The JSON body of a request; unknown fields are refused. Integers are accepted as ids and class names too."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class Ids(Body):
    """Some nodes."""

    ids: list[Id] = Field(min_length=1)


class Label(Body):
    """A node and its class."""

    id: Id
    name: ClassName = Field(alias="class")


class Labels(Body):
    """Labels to learn. again: teach a retired, renamed or merged class as a new class of its own."""

    labels: list[Label] = Field(min_length=1)
    by: By = ""
    on_conflict: StrictStr = "refuse"
    again: bool = False


class NewName(Body):
    """The new name of a class."""

    name: ClassName


class Into(Body):
    """The class that another is merged into."""

    into: ClassName


class GroupName(Body):
    """The class name for a group. version, count: of the list that contains the group."""

    name: ClassName
    by: By = ""
    version: StrictInt
    count: int = Field(5, ge=1, le=20)
    again: bool = False


class NewNodes(Body):
    """New nodes. features: for each a row of numbers or ``{name: value}``; or texts instead."""

    ids: list[Id] = Field(min_length=1)
    features: list[dict[str, Finite] | list[Finite]] | None = None
    texts: list[StrictStr] | None = None


class NewEdges(Body):
    """New edges, by the ids of their ends."""

    sources: list[Id] = Field(min_length=1)
    targets: list[Id] = Field(min_length=1)
    weights: list[Finite] | None = None


@dataclass(eq=False)
class Service:
    """One writer, whose snapshots readers take, background computations, metrics, limits and access rules."""

    writer: Writer
    background: Background
    metrics: Metrics
    limits: Limits
    rules: Rules
    waiting: int = 0  # changes that are running or waiting
    _changes: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "graphfcl-write"))

    def ready(self, values: dict[str, Any]) -> Response:
        """An answer if the folder is whole; otherwise what is wrong, without its path if reads need the token."""
        version, warning = self.writer.current.version, self.writer.trouble
        if warning is None:
            return answered(values, version)
        if self.rules.reads:
            warning = "the model folder is damaged or cannot be read: /v1/model says more to whoever has the token."
        more = f"Reads go on from version {version}, changes are refused."
        raise Problem(503, f"{warning} {more}", version=version, warning=warning)

    async def change(self, request: ChangeRequest, apply: Apply) -> Response:
        """Change the model and answer with the new version."""
        return await self.run_change(lambda: self.writer.change(request, apply))

    async def run_change(self, change: Callable[[], dict[str, Any]]) -> Response:
        """Run a change in the one thread that writes; a limited number of others may wait for it."""
        if self.waiting >= self.limits.waiting:
            raise Problem(
                503,
                f"{self.waiting} changes wait already: try again in a few seconds; nothing was changed.",
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
    """A JSON answer with the version that it describes."""
    content = json.dumps({"version": version, **values}, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    headers = {"ETag": f'"{version}"', "Cache-Control": "no-store"}
    return Response(content.encode(), media_type="application/json", headers=headers)


def sent_text(part: str) -> str:
    """A part of an address, decoded; routes receive it as it was sent."""
    try:
        return unquote_to_bytes(part).decode()
    except UnicodeDecodeError as error:
        raise Problem(400, "the address holds bytes that are no UTF-8: encode the id as UTF-8, then as %XX.") from error


def row_of(snapshot: Snapshot, node: Any) -> int:
    """The row of an id; a problem if it is not in the graph."""
    if isinstance(node, str) and len(node) > NODE_ID.longest:
        raise Problem(404, f"node {shown(node)} is not in the graph: an id has at most {NODE_ID.longest:,} characters.")
    row = snapshot.row_of(node)
    if row < 0:
        raise Problem(404, f"node {shown(node)} is not in the graph: /v1/nodes?q= finds ids.", version=snapshot.version)
    return row


def refuse_unknown_ids(snapshot: Snapshot, nodes: list[Any]) -> None:
    """Refuse ids that are not in the graph, and name the first."""
    rows = snapshot.graph.rows_of_ids(nodes).tolist()
    missing = [node for node, row in zip(nodes, rows, strict=True) if row < 0]
    if missing:
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        raise Problem(
            404,
            f"node {shown(missing[0])}{more} is not in the graph: /v1/nodes?q= finds ids; nothing was changed.",
            version=snapshot.version,
        )


def refuse_many(count: int, limit: int, what: str) -> None:
    """Refuse more of something than one request may contain."""
    if count > limit:
        raise Problem(413, f"{count:,} {what}, at most {limit:,} fit into one request: send several.")
