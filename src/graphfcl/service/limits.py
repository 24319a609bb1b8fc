"""How much one request may ask for."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """body: bytes of a request's body. ids: nodes of one prediction. labels: labels, nodes or edges of one change.

    nodes: nodes of a listing or a neighbourhood. suggestions, groups: of one list. versions: of one page.
    key: characters of an idempotency key. keys: of these, how many of the newest are remembered.
    waiting: changes that may wait for the one that is made. lock: seconds to wait for another process that writes.
    """

    body: int = 1 << 20
    ids: int = 1_000
    labels: int = 1_000
    nodes: int = 150
    suggestions: int = 200
    groups: int = 20
    versions: int = 200
    key: int = 200
    keys: int = 100_000
    waiting: int = 16
    lock: float = 30.0
