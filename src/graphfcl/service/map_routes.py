"""The route of the map."""

from fastapi import APIRouter, Response

from graphfcl.client.answers import Map
from graphfcl.service.node_map import MapMaker, map_answer
from graphfcl.service.problems import Problem
from graphfcl.service.service import Service, answered


def map_routes(service: Service) -> APIRouter:
    """The map of the newest version, laid out in the background."""
    routes, maker = APIRouter(prefix="/v1", tags=["ask"]), MapMaker(service.writer)

    @routes.get("/map", response_model=Map)
    def get_map() -> Response:
        """All nodes in two dimensions; of more than 20,000 a sample.

        Similar nodes lie together, and most nodes keep their position between versions. In the sample are nodes
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
