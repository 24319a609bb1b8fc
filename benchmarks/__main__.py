"""``python -m benchmarks [NAME …]``: run the benchmarks and print a line for each figure."""

import importlib
import sys

BENCHMARKS = (
    "load",
    "visible_graph",
    "sparse_products",
    "episode",
    "threads",
    "anchor_table",
    "whole_run",
    "methods",
    "production",
    "answers",
    "live_model",
)


def main(names: list[str]) -> None:
    unknown = sorted(set(names) - set(BENCHMARKS))
    if unknown:
        sys.exit(f"there is no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}.")
    for name in names or BENCHMARKS:
        importlib.import_module(f"benchmarks.{name}").main()


main(sys.argv[1:])
