"""The route of the map."""

from fastapi import APIRouter, Response
from pydantic import BaseModel

from graphfcl.service.node_map import MapMaker, map_answer
from graphfcl.service.problems import Problem
from graphfcl.service.service import Service, answered


class MapAnswer(BaseModel):
    """Nodes in two dimensions, in columns: entries at one place are of one node.

    status: ``computing`` while the positions of this version are not ready. Then the nodes are those of
    ``layout_version``, none if that is null; classes, doubts and flags are always of ``version``.
    shown, total: how many nodes are listed, and how many the graph has. changed_since: the version with which answers
    are compared; null if there is none or its answers are gone.
    x, y: from 0 to 10,000. class_places: the place in ``classes`` of a node's label, without a label of its likeliest
    class. doubts: 100 · (1 − p_1 + p_2) of its two likeliest classes. flags: the sum of 1 if it has no label and looks
    unknown, 2 if its answer changed, 4 if it has a label.
    """

    version: int
    status: str
    layout_version: int | None
    shown: int
    total: int
    changed_since: int | None
    classes: list[str | int]
    ids: list[str]
    x: list[int]
    y: list[int]
    class_places: list[int]
    doubts: list[int]
    flags: list[int]


def map_routes(service: Service) -> APIRouter:
    """The map of the newest version, laid out in the background."""
    routes, maker = APIRouter(prefix="/v1", tags=["ask"]), MapMaker(service.writer)

    @routes.get("/map", response_model=MapAnswer)
    def get_map() -> Response:
        """All nodes in two dimensions; of more than 20,000 a sample.

        Nodes that are alike lie together, and a node stays where it was in the version before. In the sample are nodes
        whose answer changed and labelled ones, a quarter of it each at most; the others are drawn uniformly.
        """
        snapshot = service.writer.current
        computed = service.background.find(("map",), maker.make, snapshot)
        if computed is not None and computed.error is not None and computed.version == snapshot.version:
            raise Problem(422, computed.error, version=snapshot.version)
        nodes = None if computed is None else computed.value
        version = None if computed is None else computed.version
        key = ("map", version)
        values = snapshot.memory.find(key, lambda: map_answer(snapshot, nodes, version))
        return answered(values, snapshot.version)

    return routes
