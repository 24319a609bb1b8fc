"""``graphfcl stream``."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import graphfcl.graph as graphs
import graphfcl.graph.folder as graph_folders
import graphfcl.stream as streams
from graphfcl.cli.options import GraphOptions, Seed, StreamOptions, option, refuse_file
from graphfcl.cli.output import Output, print_line, print_notes, print_table, with_json
from graphfcl.defaults import MODEL_METHOD
from graphfcl.errors import InputError
from graphfcl.runtime.resources import Resources

SAVERS: dict[str, Callable[["streams.Stream", Path], None]] = {  # file suffix → function that writes the file
    ".json": lambda stream, path: streams.save_stream(stream, path),
    ".npz": lambda stream, path: streams.save_arrays(stream, path),
}


@with_json
def show_stream(
    *,
    source: GraphOptions,
    seed: Seed = 0,
    rules: StreamOptions,
    out: Annotated[
        Path | None, option("File to save the stream to: .json, or .npz with the graph for other programs.")
    ] = None,
    saved: Annotated[Path | None, option("Show a saved stream (.json) instead of drawing one.", flag="--from")] = None,
    verify: Annotated[
        bool, option("Compare with the streams of the benchmark (default: all of them).", flag="--verify")
    ] = False,
) -> Output:
    """Split a graph into sessions and print the schedule."""
    if verify and (out or seed or rules.used_flags()):
        raise InputError("--verify uses the seeds and rules of the benchmark: leave the other options out.")
    if verify and (tables := [flag for flag in source.used_flags() if flag not in ("--graph", "--data-dir")]):
        raise InputError(f"--verify checks graphs of the benchmark by name: leave {tables[0]} out.")
    if verify and saved is None:
        return _verify([source.graph] if source.graph else None, source.data_dir)
    source.check()
    refuse_file(out, "--out", is_folder=False)
    if out is not None and out.suffix.lower() not in SAVERS:
        raise InputError(f"--out is {str(out)!r}: its name must end in .json or .npz.")
    loaded, default = _graph_of(source)
    print_notes(loaded)
    stream = drawn_or_saved(loaded, default, seed, rules, saved, "--from")
    if verify:
        return _verify_saved(stream, source.graph or "")
    if out is not None:
        SAVERS[out.suffix.lower()](stream, out)

    def show() -> None:
        _print_schedule(stream)
        if out is not None:
            print_line(f"Saved to {out}.")

    return Output({**_described(stream), "out": None if out is None else str(out)}, show)


def drawn_or_saved(
    graph: "graphs.AnyGraph",
    default: "streams.Protocol | None",
    seed: int,
    rules: StreamOptions,
    saved: Path | None,
    flag: str,
) -> "streams.Stream":
    """Draw the stream that the options describe, or load a saved one. ``flag`` is the option that names the file."""
    if saved is None:
        return streams.make_stream(graph, default, seed=seed, **rules.changes())
    if seed or rules.used_flags():
        raise InputError(f"a stream read with {flag} has its own seed and rules: leave the other options out.")
    return streams.load_stream(saved, graph)


def _graph_of(source: GraphOptions) -> "tuple[graphs.AnyGraph, streams.Protocol | None]":
    """Load a graph with its default rules."""
    if source.graph is None or not graph_folders.is_graph_folder(source.graph):
        return source.load()
    from graphfcl.experiments.graph_folders import graph_of_folder, usual_memory

    # Nothing is computed, so nothing is written to the work folder.
    return graph_of_folder(source.graph, MODEL_METHOD, Resources(Path("work"), usual_memory())), None


def _verify(names: list[str] | None, data_dir: Path | None) -> Output:
    """Draw the streams of the benchmark again, and refuse any that differs."""
    from graphfcl.experiments.benchmark import GRAPHS, SEEDS, benchmark_hashes, verify_graph

    different, checked, answer = [], 0, {}
    for graph in names or GRAPHS:
        streams = list(verify_graph(graph, data_dir))
        missing = all(one.same is None for one in streams)
        if missing and names:
            raise InputError(
                f"the files of {graph} are missing: `graphfcl data show --graph {graph}` says where to put them."
            )
        wrong = [one for one in streams if one.same is False]
        different += wrong
        checked += 0 if missing else len(streams)
        answer[graph] = None if missing else SEEDS - len(wrong)
        same = f"{answer[graph]} of {SEEDS} streams are identical"
        print_line(f"{graph}: {'files missing, not checked' if missing else same}")
    if different:
        listed = ", ".join(f"{one.graph} seed {one.seed}" for one in different)
        raise InputError(
            f"these streams differ from the benchmark: {listed}. Check the data files and the version of graphfcl."
        )
    version = benchmark_hashes()["protocol_version"]
    values = {"protocol_version": version, "graphs": answer}
    return Output(
        values, lambda: print_line(f"{checked} streams are identical to the benchmark, protocol version {version}.")
    )


def _verify_saved(stream: "streams.Stream", name: str) -> Output:
    from graphfcl.experiments.benchmark import benchmark_hashes, verify_stream

    if not verify_stream(stream, name).same:
        raise InputError(
            f"this stream differs from the benchmark's stream of {name} with seed {stream.seed}: draw it with the "
            "rules and protocol version of the benchmark."
        )
    version = benchmark_hashes()["protocol_version"]
    line = f"This is the benchmark's stream of {name} with seed {stream.seed}, protocol version {version}."
    return Output({"protocol_version": version, "graphs": {name: 1}}, lambda: print_line(line))


def _described(stream: "streams.Stream") -> dict[str, Any]:
    """The schedule as plain values."""
    import numpy as np

    base, rules = stream.base, stream.protocol
    sessions = []
    for number in range(len(stream) + 1):
        visible = stream.evaluation_graph(number)
        arriving = [stream.classes[column] for column in np.flatnonzero(stream.session_of_class == number)]
        labels = base.train.size + base.validation.size
        if number > 0:
            labels = stream.budget(number) if rules.track == "active" else stream.session(number).supports.size
        sessions.append(
            {
                "session": number,
                "new_classes": arriving,
                "labels": int(labels),
                "queries": int(stream.queries(number).nodes.size),
                "classes": stream.classes_seen(number),
                "visible_nodes": visible.node_count,
                "visible_edges": visible.edge_count,
            }
        )
    return {
        "graph": stream.graph.name,
        "seed": stream.seed,
        "protocol": rules.as_json(),
        "protocol_hash": rules.hash,
        "base": list(base.base_classes),
        "pseudo_novel": list(base.pseudo_novel_classes),
        "sessions": sessions,
    }


def _print_schedule(stream: "streams.Stream") -> None:
    rules, described = stream.protocol, _described(stream)
    protocol = f"protocol {rules.name} ({rules.hash}), version {rules.protocol_version}"
    print_line(f"{stream.graph.name}, seed {stream.seed}, {protocol}, track {rules.track}")
    print_line(f"{len(stream)} sessions of {rules.way}-way {rules.shot}-shot, {len(stream.classes)} classes in the end")
    print_line()
    print_line(f"base ({stream.split.base_count}): {', '.join(described['base'])}")
    print_line(f"pseudo-novel ({stream.split.pseudo_novel_count}): {', '.join(described['pseudo_novel']) or 'none'}")
    rows = [
        (
            session["session"],
            ", ".join(session["new_classes"]) if session["session"] else "base and pseudo-novel",
            f"{session['labels']:,}",
            f"{session['queries']:,}",
            session["classes"],
            f"{session['visible_nodes']:,}",
            f"{session['visible_edges']:,}",
        )
        for session in described["sessions"]
    ]
    columns = ("session", "new classes", "labels", "queries", "classes", "visible nodes", "visible edges")
    print_table(columns, rows, numbers=[column for column in columns if column != "new classes"])
