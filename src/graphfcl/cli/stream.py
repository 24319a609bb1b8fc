"""``graphfcl stream``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphfcl.cli.options import DataDir, Seed, StreamOptions, with_option_groups
from graphfcl.errors import InputError

if TYPE_CHECKING:
    from graphfcl.stream import Stream


@with_option_groups
def show_stream(
    name: Annotated[str, typer.Argument(help="A name from `data list`, an .npz file, or a folder of tables.")],
    *,
    seed: Seed = 0,
    rules: StreamOptions,
    out: Annotated[Path | None, typer.Option("--out", help="Save the stream as this JSON file.")] = None,
    saved: Annotated[Path | None, typer.Option("--from", help="Show a saved stream instead of making one.")] = None,
    data_dir: DataDir = None,
) -> None:
    """Cut a graph into sessions, print the schedule, and save it."""
    from graphfcl.datasets import load_dataset
    from graphfcl.stream import load_stream, make_stream, save_stream

    changes = rules.changes()
    if saved is not None and (seed or rules.given()):
        raise InputError("a stream read with --from has its own seed and rules: leave the other options out.")
    graph, default = load_dataset(name, data_dir=data_dir)
    stream = load_stream(saved, graph) if saved else make_stream(graph, default, seed=seed, **changes)
    _print_schedule(stream)
    if out is not None:
        save_stream(stream, out)
        print(f"Saved to {out}.")


def _print_schedule(stream: "Stream") -> None:
    import numpy as np

    from graphfcl.cli.show import print_table

    rules, split = stream.protocol, stream.split
    protocol = f"protocol {rules.name} ({rules.hash}), rules {rules.rules}"
    print(f"{stream.graph.name}, seed {stream.seed}, {protocol}, track {rules.track}")
    print(f"{len(stream)} sessions of {rules.way}-way {rules.shot}-shot, {len(stream.classes)} classes in the end\n")
    base = stream.base
    held_out = [base.classes[column] for column in base.validation_columns]
    print(f"base ({split.base_count}): {', '.join(base.base_classes)}")
    print(f"pseudo-novel ({split.pseudo_novel_count}): {', '.join(base.pseudo_novel_classes) or 'none'}")
    print(f"  of these held out for validation: {', '.join(held_out) or 'none'}")
    rows = []
    for number in range(len(stream) + 1):
        visible = stream.evaluation_graph(number)
        labelled = base.train.size + base.validation.size if number == 0 else stream.session(number).supports.size
        arriving = "base and pseudo-novel"
        if number > 0:
            arriving = ", ".join(stream.classes[c] for c in np.flatnonzero(stream.session_of_class == number))
        rows.append(
            (
                number,
                arriving,
                f"{labelled:,}",
                f"{stream.queries(number).nodes.size:,}",
                stream.classes_seen(number),
                f"{visible.node_count:,}",
                f"{visible.edge_count:,}",
            )
        )
    columns = ("session", "new classes", "labels", "queries", "classes", "visible nodes", "visible edges")
    print_table(columns, rows, numbers=[column for column in columns if column != "new classes"])
