"""``python -m benchmarks [NAME …]``: run the benchmarks and print a line for each figure.

Options that follow a single name are its own.
"""

import importlib
import sys

BENCHMARKS = (
    "load",
    "visible_graph",
    "sparse_products",
    "episode",
    "threads",
    "engines",
    "anchor_table",
    "whole_run",
    "methods",
    "production",
    "answers",
    "groups",
    "label_issues",
    "labelling_order",
    "closed_set",
    "false_positives",
    "suggest",
    "live_model",
    "model_folder",
    "start_up",
    "service",
    "large",
    "table_import",
    "two_trees",
)


def main(arguments: list[str]) -> None:
    first = next((place for place, word in enumerate(arguments) if word.startswith("--")), len(arguments))
    names, options = arguments[:first], arguments[first:]
    if options and len(names) != 1:
        sys.exit("options belong to one benchmark: name it first.")
    unknown = sorted(set(names) - set(BENCHMARKS))
    if unknown:
        sys.exit(f"there is no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}.")
    for name in names or BENCHMARKS:
        run = importlib.import_module(f"benchmarks.{name}").main
        run(options) if options else run()


main(sys.argv[1:])
