"""``graphfcl data list``, ``data show``, ``data check`` and ``data import``."""

from pathlib import Path
from typing import Annotated, Any

import typer

import graphfcl.datasets as datasets
import graphfcl.graph as graphs
import graphfcl.graph.folder as graph_folders
import graphfcl.production as production
import graphfcl.stream as streams
from graphfcl.cli.help import Verb, Verbs, epilog
from graphfcl.cli.options import DataDir, GraphOptions, Seed, option
from graphfcl.cli.output import Output, print_line, print_table, with_json
from graphfcl.errors import counted
from graphfcl.runtime.memory import format_bytes

data = typer.Typer(help="List, show, check and import graphs.", no_args_is_help=True, cls=Verbs, rich_markup_mode=None)


@data.command("list", epilog=epilog("data list"), cls=Verb)
@with_json
def list_datasets(data_dir: DataDir = None) -> Output:
    """List all known graphs, and whether their files are present."""
    folder = datasets.data_folder(data_dir)

    def state(dataset: "datasets.Dataset") -> str:
        if not dataset.files:
            return "shipped" if dataset.source.startswith("shipped") else "made"
        return "missing" if dataset.missing_files(folder) else "found"

    rows = [(d.name, state(d), _defaults(d.protocol), d.title) for d in datasets.all_datasets()]

    def show() -> None:
        print_table(("name", "files", "default stream", "what"), rows)
        print_line(f"Data folder: {folder or f'none (--data-dir or ${datasets.DATA_VARIABLE})'}.")
        print_line("--graph also takes the path of an .npz file, of a folder with two tables, or of a graph folder.")

    keys = ("name", "files", "default_stream", "title")
    listed = [dict(zip(keys, row, strict=True)) for row in rows]
    return Output({"data_folder": None if folder is None else str(folder), "graphs": listed}, show)


@data.command("show", epilog=epilog("data show"), cls=Verb)
@with_json
def show_dataset(source: GraphOptions, as_json: bool = False) -> Output:
    """Show the counts, class sizes and origin of a graph."""
    dataset, options = source.dataset()
    if source.graph is not None and graph_folders.is_graph_folder(source.graph):
        stored = graph_folders.GraphFolder.open(source.graph)
        facts = describe(dataset, stored, name=stored.name, source=stored.source, digest=stored.sha256)
        return Output(facts, lambda: _print_facts(facts))
    folder = datasets.data_folder(source.data_dir) if dataset.files else None
    if dataset.missing_files(folder) and not as_json:
        print_line(f"{dataset.name}: {dataset.title}")
        print_line()
    loaded = dataset.read(source.data_dir, options)
    facts = describe(dataset, loaded, sha256=loaded.sha256)
    return Output(facts, lambda: _print_facts(facts))


@data.command("check", epilog=epilog("data check"), cls=Verb)
@with_json
def check_dataset(source: GraphOptions, seed: Seed = 0) -> Output:
    """Check a graph for problems; nothing is trained or written.

    The exit code is 0 if nothing serious was found, 1 if something was, and 2 if the graph cannot be read.
    """
    loaded, _ = source.load()
    findings = production.check_graph(loaded, seed=seed)
    serious = sum(finding.serious for finding in findings)

    def show() -> None:
        sizes = counted(loaded.node_count, "node"), counted(loaded.edge_count, "edge"), len(loaded.class_names)
        print_line(f"{loaded.name}: {sizes[0]}, {sizes[1]}, {counted(sizes[2], 'class')}")
        for note in (note for note in loaded.notes if not any(note == finding.text for finding in findings)):
            print_line(f"note: {note}")
        for finding in findings:
            print_line(f"{'serious' if finding.serious else 'look at'}: {finding.text.removeprefix('Warning: ')}")
        print_line(f"{counted(len(findings), 'finding')}, {serious} serious." if findings else "Nothing looks wrong.")

    values = {
        "name": loaded.name,
        "nodes": loaded.node_count,
        "edges": loaded.edge_count,
        "classes": len(loaded.class_names),
        "notes": list(loaded.notes),
        "findings": [finding.as_json() for finding in findings],
    }
    return Output(values, show, code=1 if serious else 0)


@data.command("import", epilog=epilog("data import"), cls=Verb)
@with_json
def import_dataset(
    source: GraphOptions,
    *,
    out: Annotated[Path, option("Graph folder to create.")],
    memory: Annotated[str, option("Memory that the import may use, such as 800MB or 4GB.")] = "2GB",
) -> Output:
    """Create a graph folder, for graphs that do not fit in memory.

    An interrupted import leaves no folder and starts over. --graph may also name a raw OGB dataset.
    """
    from graphfcl.datasets.importing import import_graph

    with source.source() as graph:
        folder = import_graph(graph, out, memory=memory, name=source.name, data_dir=source.data_dir, tell=print_line)

    def show() -> None:
        print_line(f"{folder.edge_count:,} edges are written.")
        for note in folder.manifest.notes:
            print_line(f"note: {note}")
        print_line(f"{out} holds {folder.name}: {format_bytes(folder.byte_count)}, digest {folder.sha256}.")

    values = {
        "folder": str(out),
        "name": folder.name,
        "nodes": folder.node_count,
        "edges": folder.edge_count,
        "classes": len(folder.class_names),
        "bytes": folder.byte_count,
        "digest": folder.sha256,
        "notes": list(folder.manifest.notes),
    }
    return Output(values, show)


def describe(dataset: "datasets.Dataset", graph: "graphs.AnyGraph", **more: Any) -> dict[str, Any]:
    """The facts that `data show` prints, as plain values. ``more`` adds or replaces values."""
    import numpy as np

    order = np.argsort(-graph.class_sizes, kind="stable")
    return {
        "name": dataset.name,
        "title": dataset.title,
        "nodes": graph.node_count,
        "edges": graph.edge_count,
        "weighted": graph.weighted,
        "features": graph.feature_count,
        "feature_storage": "sparse" if graph.sparse_features else "dense",
        "feature_nonzeros": graph.stored_values,
        "text": graph.text is not None,
        "numbers_beside_words": 0 if graph.text is None else sum(graph.text.beside),
        "classes": len(graph.class_names),
        "unlabelled_nodes": int((graph.labels < 0).sum()),
        "isolated_nodes": graph.isolated_node_count,
        "components": graph.component_count,
        "same_class_edges": graph.same_class_share,
        "class_sizes": {graph.class_names[number]: int(graph.class_sizes[number]) for number in order},
        "default_stream": None if dataset.protocol is None else dataset.protocol.as_json(),
        "source": dataset.source,
        "files": list(dataset.files),
        "note": dataset.note,
        "notes": list(graph.notes),
        "bytes": graph.byte_count,
        **more,
    }


def _print_facts(facts: dict[str, Any]) -> None:
    share = facts["same_class_edges"]
    stored = "values stored" if "digest" in facts else "not zero"
    kind = f"{facts['feature_storage']}, {facts['feature_nonzeros']:,} {stored}"
    if facts["text"]:
        numbers = facts["numbers_beside_words"]
        words = "word counts"
        if numbers:
            words = f"{facts['features'] - numbers:,} word counts and {counted(numbers, 'number')}"
        kind = f"{words}, {facts['feature_nonzeros']:,} not zero; TF-IDF is fitted on the nodes of session 0"
    default = facts["default_stream"]
    print_line(f"{facts['name']}: {facts['title']}")
    print_line()
    print_line(f"nodes            {facts['nodes']:,} ({facts['unlabelled_nodes']:,} without a label)")
    print_line(f"edges            {facts['edges']:,}{' weighted' if facts['weighted'] else ''}")
    print_line(f"same-class edges {'unknown' if share is None else f'{share:.1%}'}")
    components = "not counted" if facts["components"] is None else f"{facts['components']:,}"
    print_line(f"components       {components} ({facts['isolated_nodes']:,} isolated nodes)")
    print_line(f"features         {facts['features']:,} ({kind})")
    print_line(f"classes          {facts['classes']}")
    rules = _defaults(streams.Protocol.from_json(default)) if default else "suggested from the classes"
    print_line(f"default stream   {rules}")
    print_line(f"source           {facts['source']}")
    if "sha256" in facts:
        print_line(f"SHA-256          {facts['sha256']}")
    else:
        print_line(f"bytes            {facts['bytes']:,} on the disk")
        print_line(f"digest           {facts['digest']}")
    for note in filter(None, [facts["note"], *facts["notes"]]):
        print_line(f"note             {note}")
    sizes = [(name, f"{size:,}") for name, size in facts["class_sizes"].items()]
    print_table(("class", "nodes"), sizes, numbers=("nodes",))


def _defaults(protocol: "streams.Protocol | None") -> str:
    if protocol is None:
        return "suggested"
    parts = (protocol.base, protocol.pseudo_novel, "rest" if protocol.novel is None else protocol.novel)
    return f"{'/'.join(str(part) for part in parts)}, {protocol.way}-way {protocol.shot}-shot"
