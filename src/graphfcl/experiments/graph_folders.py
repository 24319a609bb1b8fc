"""A graph folder for a run: in memory if it fits there, and on the disk for methods that work on it there."""

from pathlib import Path

from graphfcl.errors import InputError
from graphfcl.graph import AnyGraph
from graphfcl.graph.folder import GraphFolder
from graphfcl.methods import METHODS, find_method
from graphfcl.runtime.memory import format_bytes, process_bytes, usable_bytes
from graphfcl.runtime.resources import Resources

SHARE = 0.75  # of the usable memory that a run may take by default


def usual_memory() -> int:
    """Bytes that a run may use by default; 4 GiB where the system does not report how many there are."""
    usable = usable_bytes()
    return 4 << 30 if usable is None else int(SHARE * usable)


def graph_of_folder(path: str | Path, method: str, resources: Resources, *, stay: bool = False) -> AnyGraph:
    """The graph of a folder as a method takes it. stay: on the disk even if it fits into memory."""
    graph = GraphFolder.open(path, resources)
    needed = process_bytes() + graph.bytes_in_memory
    on_disk = find_method(method).learner.works_on_disk
    if needed <= resources.memory and not stay:
        return graph.loaded()
    if on_disk:
        return graph
    able = " or ".join(each.name for each in METHODS if each.learner.works_on_disk)
    if stay and needed <= resources.memory:
        raise InputError(f"{method} cannot work on the disk: leave --work out, or take {able}, which can.")
    raise InputError(
        f"{method} needs the whole of {graph.name} in memory, about {format_bytes(needed)}, and --memory is "
        f"{format_bytes(resources.memory)}: take {able}, which work on the disk, or a larger --memory."
    )
