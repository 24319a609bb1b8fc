"""Leases of nodes that are shown to somebody, so that two people do not label the same node at once.

Leases are kept in memory only and expire. They do not block labels: anyone may label a leased node.
"""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Response
from pydantic import Field, StrictStr

from graphfcl.client.answers import Claimed
from graphfcl.service.bodies import Body, Id
from graphfcl.service.service import Service, answered

SECONDS = 120.0  # after which a lease expires unless it is renewed
MOST = 20  # maximum number of nodes that one holder can lease
MOST_LEASES = 10_000  # maximum number of leases at the same time


class Claim(Body):
    """The nodes that a holder is about to show. Its other leases are released.

    Attributes:
        holder: Identifier of the holder: a browser tab, not a person.
        ids: Ids of the nodes, at most 20.
    """

    holder: Annotated[StrictStr, Field(min_length=1, max_length=100)]
    ids: list[Id] = Field(max_length=MOST)


class Leases:
    """The holder and the end of each lease. ``clock`` returns monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._leases: dict[str, tuple[str, float]] = {}

    def claim(self, holder: str, ids: Sequence[str]) -> dict[str, Any]:
        """Lease free nodes, renew leases that the holder has on these nodes, and release its other leases."""
        with self._lock:
            now, wanted = self._clock(), dict.fromkeys(ids)
            self._leases = {
                node: lease
                for node, lease in self._leases.items()
                if lease[1] > now and (lease[0] != holder or node in wanted)
            }
            if len(self._leases) + len(wanted) > MOST_LEASES:
                wanted = {}
            taken = [node for node in wanted if self._leases.get(node, (holder,))[0] != holder]
            held = [node for node in wanted if node not in taken]
            self._leases |= dict.fromkeys(held, (holder, now + SECONDS))
        return {"held": held, "taken": taken, "seconds": SECONDS}


def lease_routes(service: Service) -> APIRouter:
    """Make the route that leases nodes of the queue."""
    routes, leases = APIRouter(prefix="/v1", tags=["change"]), Leases()

    @routes.post("/queue/leases", response_model=Claimed)
    async def claim_nodes(body: Claim) -> Response:
        """Lease up to 20 nodes of the queue for two minutes, and release the other leases of this holder.

        ``taken`` lists nodes that another holder has. Leases are kept in memory only and block no labels: anyone may
        label a leased node.
        """
        answer = leases.claim(body.holder, [str(node) for node in body.ids])
        return answered(answer, service.writer.current.version)

    return routes
