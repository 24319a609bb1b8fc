"""Times, memory, and how a figure is printed."""

import time
from collections.abc import Callable, Mapping


def best_seconds(function: Callable[[], object], repeats: int = 5) -> float:
    """The shortest of several runs, after one that does not count."""
    return best_seconds_of({"": function}, repeats)[""]


def best_seconds_of(functions: Mapping[str, Callable[[], object]], repeats: int = 5) -> dict[str, float]:
    """The shortest of several runs of each function, in turn, after one that does not count."""
    best = {name: float("inf") for name in functions}
    for count in range(repeats + 1):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            if count:
                best[name] = min(best[name], time.perf_counter() - start)
    return best


def report(name: str, value: float, unit: str, bar: str, met: bool) -> None:
    """One line: the figure, the bar it is held to, and whether it is met."""
    print(f"{name:<66} {value:8.2f} {unit:<8} bar {bar:<10} {'met' if met else 'MISSED'}", flush=True)
