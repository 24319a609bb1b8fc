"""Times, memory, and how a figure is printed."""

import time
from collections.abc import Callable


def best_seconds(function: Callable[[], object], repeats: int = 5) -> float:
    """The shortest of several runs, after one that does not count."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def report(name: str, value: float, unit: str, bar: str, met: bool) -> None:
    """One line: the figure, the bar it is held to, and whether it is met."""
    print(f"{name:<66} {value:8.2f} {unit:<8} bar {bar:<10} {'met' if met else 'MISSED'}", flush=True)
