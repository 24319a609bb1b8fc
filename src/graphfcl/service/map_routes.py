"""The route of the map."""

from fastapi import APIRouter, Response

from graphfcl.client.answers import Map
from graphfcl.service.node_map import MapMaker, map_answer
from graphfcl.service.problems import Problem
from graphfcl.service.service import Service, answered


def map_routes(service: Service) -> APIRouter:
    """Make the route of the map, which is laid out in the background."""
    routes, maker = APIRouter(prefix="/v1", tags=["read"]), MapMaker(service.writer)

    @routes.get("/map", response_model=Map)
    def get_map() -> Response:
        """Return positions of all nodes in two dimensions; similar nodes lie together.

        The layout is computed in the background. Until it is ready, the positions are those of ``layout_version``;
        classes, doubts and flags are always those of ``version``. While the service runs, a node whose vector hardly
        changes keeps its exact position, and a new node is placed between the nodes most similar to it. If more than
        half of the vectors change, as in a refit, all positions are computed again, starting from the old ones.

        Of a graph with more than 20,000 nodes, the map has a sample: nodes whose prediction changed since
        ``changed_since`` and labelled nodes, at most a quarter each, and a uniform draw that hardly changes when the
        graph grows.
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
