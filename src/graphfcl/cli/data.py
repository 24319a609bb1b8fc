"""``graphfcl data list`` and ``graphfcl data show``."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphfcl.cli.options import DataDir
from graphfcl.cli.show import say, say_json

if TYPE_CHECKING:
    from graphfcl.datasets import Dataset
    from graphfcl.graph import Graph
    from graphfcl.stream import Protocol

data = typer.Typer(help="The graphs at hand.", no_args_is_help=True)


@data.command("list")
def list_datasets(data_dir: DataDir = None) -> None:
    """All known datasets, and whether their files are there."""
    from graphfcl.cli.show import print_table
    from graphfcl.datasets import DATA_VARIABLE, DATASETS, data_folder

    folder = data_folder(data_dir)

    def state(dataset: "Dataset") -> str:
        if not dataset.files:
            return "shipped" if dataset.source.startswith("shipped") else "made"
        return "missing" if dataset.missing_files(folder) else "found"

    rows = [(d.name, state(d), _defaults(d.protocol), d.title) for d in DATASETS]
    print_table(("name", "files", "default stream", "what"), rows)
    say(f"Data folder: {folder or f'none (--data-dir or ${DATA_VARIABLE})'}.")
    say("Any path to an .npz graph or to a folder with nodes and edges tables is a name too.")


@data.command("show")
def show_dataset(
    name: Annotated[str, typer.Argument(help="A name from `data list`, an .npz file, or a folder of tables.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Counts, class sizes and origin of a graph."""
    from graphfcl.datasets import data_folder, find_dataset

    dataset, options = find_dataset(name)
    folder = data_folder(data_dir) if dataset.files else None
    if dataset.missing_files(folder) and not as_json:
        say(f"{dataset.name}: {dataset.title}")
        say()
    graph = dataset.load(folder, options)
    facts = describe(dataset, graph)
    if as_json:
        say_json(facts, ascii_only=False)
        return
    _print_facts(facts)


def describe(dataset: "Dataset", graph: "Graph") -> dict[str, Any]:
    """What `data show` tells, as plain values."""
    import numpy as np
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    is_sparse = sparse.issparse(graph.features)
    stored: Any = graph.features.nnz if is_sparse else np.count_nonzero(graph.features)
    order = np.argsort(-graph.class_sizes, kind="stable")
    return {
        "name": dataset.name,
        "title": dataset.title,
        "nodes": graph.node_count,
        "edges": graph.edge_count,
        "weighted": graph.weighted,
        "features": int(graph.features.shape[1]),
        "feature_storage": "sparse" if is_sparse else "dense",
        "feature_nonzeros": int(stored),
        "text": graph.text is not None,
        "classes": len(graph.class_names),
        "unlabelled_nodes": int((graph.labels < 0).sum()),
        "isolated_nodes": int((np.diff(graph.adjacency.indptr) == 0).sum()),
        "components": int(connected_components(graph.adjacency, directed=False)[0]) if graph.node_count else 0,
        "same_class_edges": graph.same_class_share,
        "class_sizes": {graph.class_names[number]: int(graph.class_sizes[number]) for number in order},
        "default_stream": None if dataset.protocol is None else dataset.protocol.as_json(),
        "source": dataset.source,
        "files": list(dataset.files),
        "note": dataset.note,
        "notes": list(graph.notes),
        "bytes": graph.byte_count,
        "sha256": graph.sha256,
    }


def _print_facts(facts: dict[str, Any]) -> None:
    from graphfcl.cli.show import print_table
    from graphfcl.stream import Protocol

    share = facts["same_class_edges"]
    kind = f"{facts['feature_storage']}, {facts['feature_nonzeros']:,} not zero"
    if facts["text"]:
        kind = f"word counts, {facts['feature_nonzeros']:,} not zero; TF-IDF is fitted on the nodes of session 0"
    default = facts["default_stream"]
    say(f"{facts['name']}: {facts['title']}")
    say()
    say(f"nodes            {facts['nodes']:,} ({facts['unlabelled_nodes']:,} without a label)")
    say(f"edges            {facts['edges']:,}{' weighted' if facts['weighted'] else ''}")
    say(f"same-class edges {'unknown' if share is None else f'{share:.1%}'}")
    say(f"components       {facts['components']:,} ({facts['isolated_nodes']:,} isolated nodes)")
    say(f"features         {facts['features']:,} ({kind})")
    say(f"classes          {facts['classes']}")
    say(f"default stream   {_defaults(Protocol.from_json(default)) if default else 'suggested from the classes'}")
    say(f"source           {facts['source']}")
    say(f"SHA-256          {facts['sha256']}")
    for note in filter(None, [facts["note"], *facts["notes"]]):
        say(f"note             {note}")
    sizes = list(facts["class_sizes"].items())
    print_table(("class", "nodes"), [(name, f"{size:,}") for name, size in sizes], numbers=("nodes",))


def _defaults(protocol: "Protocol | None") -> str:
    if protocol is None:
        return "suggested"
    parts = (protocol.base, protocol.pseudo_novel, "rest" if protocol.novel is None else protocol.novel)
    return f"{'/'.join(str(part) for part in parts)}, {protocol.way}-way {protocol.shot}-shot"
