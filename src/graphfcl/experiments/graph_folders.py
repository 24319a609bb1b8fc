"""Open a graph folder for a run: in memory if it fits, otherwise on disk if the method supports that."""

from pathlib import Path

from graphfcl.errors import InputError
from graphfcl.graph import AnyGraph
from graphfcl.graph.folder import GraphFolder
from graphfcl.methods import METHODS, find_method
from graphfcl.runtime.memory import format_bytes, process_bytes, usable_bytes
from graphfcl.runtime.resources import Resources

MEMORY_SHARE = 0.75  # of the usable memory, for a run by default


def usual_memory() -> int:
    """Memory that a run may use by default, in bytes; 4 GiB where the system does not report its memory."""
    usable = usable_bytes()
    return 4 << 30 if usable is None else int(MEMORY_SHARE * usable)


def graph_of_folder(path: str | Path, method: str, resources: Resources, *, stay: bool = False) -> AnyGraph:
    """Open the graph of a folder for a method. With ``stay`` it remains on disk even if it fits into memory."""
    graph = GraphFolder.open(path, resources)
    needed = process_bytes() + graph.bytes_in_memory
    on_disk = find_method(method).learner.works_on_disk
    if needed <= resources.memory and not stay:
        return graph.loaded()
    if on_disk:
        return graph
    capable = " or ".join(each.name for each in METHODS if each.learner.works_on_disk)
    if stay and needed <= resources.memory:
        raise InputError(f"{method} cannot work on disk: leave --work out, or use {capable}.")
    raise InputError(
        f"{method} needs all of {graph.name} in memory, about {format_bytes(needed)}, but --memory is "
        f"{format_bytes(resources.memory)}: use {capable}, which can work on disk, or a larger --memory."
    )
