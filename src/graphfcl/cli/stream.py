"""``graphfcl stream``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphfcl.cli.options import DataDir, Seed, StreamOptions, with_option_groups
from graphfcl.cli.show import say
from graphfcl.errors import InputError

if TYPE_CHECKING:
    from graphfcl.stream import Stream


@with_option_groups
def show_stream(
    name: Annotated[
        str | None, typer.Argument(help="A name from `data list`, an .npz file, or a folder of tables.")
    ] = None,
    *,
    seed: Seed = 0,
    rules: StreamOptions,
    out: Annotated[Path | None, typer.Option("--out", help="Save the stream as this JSON file.")] = None,
    saved: Annotated[Path | None, typer.Option("--from", help="Show a saved stream instead of making one.")] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Check that streams are those of the benchmark; without NAME all fifty.")
    ] = False,
    data_dir: DataDir = None,
) -> None:
    """Cut a graph into sessions, print the schedule, and save it."""
    from graphfcl.datasets import load_dataset
    from graphfcl.stream import load_stream, make_stream, save_stream

    if verify and (out or seed or rules.given()):
        raise InputError("--verify checks the benchmark's own seeds and rules: leave the other options out.")
    if verify and saved is None:
        _verify([name] if name else None, data_dir)
        return
    if name is None:
        raise InputError("name the graph: `graphfcl data list` has the names.")
    changes = rules.changes()
    if saved is not None and (seed or rules.given()):
        raise InputError("a stream read with --from has its own seed and rules: leave the other options out.")
    graph, default = load_dataset(name, data_dir=data_dir)
    stream = load_stream(saved, graph) if saved else make_stream(graph, default, seed=seed, **changes)
    if verify:
        _verify_saved(stream, name)
        return
    _print_schedule(stream)
    if out is not None:
        save_stream(stream, out)
        say(f"Saved to {out}.")


def _verify(names: list[str] | None, data_dir: Path | None) -> None:
    """Draw the streams of the benchmark again; one that differs is an error."""
    from graphfcl.experiments.benchmark import GRAPHS, SEEDS, benchmark_hashes, verify_graph

    different, checked = [], 0
    for graph in names or GRAPHS:
        found = list(verify_graph(graph, data_dir))
        missing = all(one.same is None for one in found)
        if missing and names:
            raise InputError(f"the files of {graph} are not here: `graphfcl data show {graph}` says where they belong.")
        wrong = [one for one in found if one.same is False]
        different += wrong
        checked += 0 if missing else len(found)
        said = "files not here, not checked" if missing else f"{SEEDS - len(wrong)} of {SEEDS} streams are the same"
        say(f"{graph}: {said}")
    if different:
        listed = ", ".join(f"{one.graph} seed {one.seed}" for one in different)
        raise InputError(f"these streams are not those of the benchmark: {listed}; check the data and the version.")
    say(f"{checked} streams are those of the benchmark, rules {benchmark_hashes()['rules']}.")


def _verify_saved(stream: "Stream", name: str) -> None:
    from graphfcl.experiments.benchmark import benchmark_hashes, verify_stream

    if not verify_stream(stream, name).same:
        raise InputError(
            f"this is not the benchmark's stream of {name} with seed {stream.seed}: it was drawn otherwise."
        )
    say(f"This is the benchmark's stream of {name} with seed {stream.seed}, rules {benchmark_hashes()['rules']}.")


def _labels(stream: "Stream", number: int) -> int:
    """How many labels a session brings; under ``asked``, how many may be asked for."""
    asked = stream.protocol.track == "asked"
    return stream.budget(number) if asked else int(stream.session(number).supports.size)


def _print_schedule(stream: "Stream") -> None:
    import numpy as np

    from graphfcl.cli.show import print_table

    rules, split = stream.protocol, stream.split
    protocol = f"protocol {rules.name} ({rules.hash}), rules {rules.rules}"
    say(f"{stream.graph.name}, seed {stream.seed}, {protocol}, track {rules.track}")
    say(f"{len(stream)} sessions of {rules.way}-way {rules.shot}-shot, {len(stream.classes)} classes in the end")
    say()
    base = stream.base
    held_out = [base.classes[column] for column in base.validation_columns]
    say(f"base ({split.base_count}): {', '.join(base.base_classes)}")
    say(f"pseudo-novel ({split.pseudo_novel_count}): {', '.join(base.pseudo_novel_classes) or 'none'}")
    say(f"  of these held out for validation: {', '.join(held_out) or 'none'}")
    rows = []
    for number in range(len(stream) + 1):
        visible = stream.evaluation_graph(number)
        labelled = base.train.size + base.validation.size if number == 0 else _labels(stream, number)
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
