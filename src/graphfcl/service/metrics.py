"""Collect metrics of the service, and write them in the text format of Prometheus."""

import threading
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # seconds
TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass
class Histogram:
    """Histogram of durations in the buckets of ``BOUNDS``, and the sum of all durations."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    total: float = 0.0

    def add(self, seconds: float) -> None:
        place = next((place for place, bound in enumerate(BOUNDS) if seconds <= bound), len(BOUNDS))
        self.counts[place] += 1
        self.total += seconds

    def lines(self, name: str, labels: str = "") -> list[str]:
        """Return the lines of the histogram, with cumulative counts as Prometheus expects them."""
        before, lines = 0, []
        comma = f"{labels}," if labels else ""
        for bound, count in zip((*BOUNDS, "+Inf"), self.counts, strict=True):
            before += count
            lines.append(f'{name}_bucket{{{comma}le="{bound}"}} {before}')
        braces = f"{{{labels}}}" if labels else ""
        return [*lines, f"{name}_sum{braces} {self.total:.6f}", f"{name}_count{braces} {before}"]


class Metrics:
    """Counts requests and records how long they take. Routes are templates, so that no id becomes a label."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: dict[tuple[str, str, int], int] = defaultdict(int)
        self._seconds: dict[str, Histogram] = defaultdict(Histogram)
        self._changes: dict[str, Histogram] = defaultdict(Histogram)

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        with self._lock:
            self._requests[method, route, status] += 1
            self._seconds[route].add(seconds)

    def change(self, what: str, seconds: float) -> None:
        """Record how long a change took."""
        with self._lock:
            self._changes[what].add(seconds)

    def text(self, gauges: Mapping[str, float]) -> str:
        """Return all metrics as text. ``gauges`` are current values by name."""
        with self._lock:
            lines = ["# TYPE graphfcl_requests_total counter"]
            lines += [
                f'graphfcl_requests_total{{method="{method}",route="{route}",status="{status}"}} {count}'
                for (method, route, status), count in sorted(self._requests.items())
            ]
            lines.append("# TYPE graphfcl_request_seconds histogram")
            for route, times in sorted(self._seconds.items()):
                lines += times.lines("graphfcl_request_seconds", f'route="{route}"')
            lines.append("# TYPE graphfcl_change_seconds histogram")
            for what, times in sorted(self._changes.items()):
                lines += times.lines("graphfcl_change_seconds", f'what="{what}"')
        for name, value in gauges.items():
            lines += [f"# TYPE graphfcl_{name} gauge", f"graphfcl_{name} {value}"]
        return "\n".join(lines) + "\n"
