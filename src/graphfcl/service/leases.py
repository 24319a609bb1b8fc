"""Leases of nodes: who is being shown a node to label, so that two people are not asked about the same one.

Leases are in memory alone and end by themselves. A label for a leased node is accepted all the same.
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

SECONDS = 120.0  # until a lease ends that is not renewed
MOST = 20  # nodes that one holder has
MOST_HELD = 10_000  # leases at once


class Claim(Body):
    """Nodes that a holder is about to show; its other ones become free. holder: a tab, not a person."""

    holder: Annotated[StrictStr, Field(min_length=1, max_length=100)]
    ids: list[Id] = Field(max_length=MOST)


class Leases:
    """Which holder has which node, and until when. clock: seconds that never go back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._held: dict[str, tuple[str, float]] = {}

    def claim(self, holder: str, ids: Sequence[str]) -> dict[str, Any]:
        """Renew or take what is free; give back what else the holder had."""
        with self._lock:
            now, wanted = self._clock(), dict.fromkeys(ids)
            self._held = {
                node: lease
                for node, lease in self._held.items()
                if lease[1] > now and (lease[0] != holder or node in wanted)
            }
            if len(self._held) + len(wanted) > MOST_HELD:
                wanted = {}
            taken = [node for node in wanted if self._held.get(node, (holder,))[0] != holder]
            held = [node for node in wanted if node not in taken]
            self._held |= dict.fromkeys(held, (holder, now + SECONDS))
        return {"held": held, "taken": taken, "seconds": SECONDS}


def lease_routes(service: Service) -> APIRouter:
    """The route that leases nodes of the queue."""
    routes, leases = APIRouter(prefix="/v1", tags=["change"]), Leases()

    @routes.post("/queue/leases", response_model=Claimed)
    async def claim_nodes(body: Claim) -> Response:
        """Say which nodes of the queue are about to be shown, and learn which of them others are labelling."""
        answer = leases.claim(body.holder, [str(node) for node in body.ids])
        return answered(answer, service.writer.current.version)

    return routes
