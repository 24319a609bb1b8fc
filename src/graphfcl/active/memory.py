"""What is costly to compute and asked for again: a few results, kept as long as what they were computed from."""

import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

Result = TypeVar("Result")


class Memory:
    """The latest results, by a key that says all that they depend on; threads may share it.

    most: how many are kept; the one that was asked for longest ago goes first.
    """

    def __init__(self, most: int = 4) -> None:
        self._most, self._lock = most, threading.RLock()
        self._kept: dict[Hashable, Any] = {}

    def find(self, key: Hashable, compute: Callable[[], Result]) -> Result:
        """What was computed for this key, or is computed now; a second thread that asks meanwhile waits for it."""
        with self._lock:
            found = self._kept.pop(key) if key in self._kept else compute()
            self._kept[key] = found
            while len(self._kept) > self._most:
                del self._kept[next(iter(self._kept))]
            return found
