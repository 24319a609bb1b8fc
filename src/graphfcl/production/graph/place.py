"""Where the graph folder of a model lies, and what may be used to compute on it: a small file beside the versions.

Versions name the graph folder by its digest alone, so they stay as they are if it moves. This file says where it was
seen last, relative to the model and as a full path, and where the work folder is. It may be written again at any time.
"""

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphfcl.errors import InputError
from graphfcl.runtime.files import canonical_json, make_folder, need_folder, write_bytes

if TYPE_CHECKING:  # a query of a model in memory does not import scipy
    from graphfcl.graph.folder import GraphFolder
    from graphfcl.graph.interfaces import AnyGraph
    from graphfcl.runtime.resources import Resources
    from graphfcl.runtime.tasks import Tasks

PLACE = "graph.json"
WORK = "work"
USUAL_MEMORY = 4 << 30  # bytes, if the file is lost


@dataclass(frozen=True)
class FolderUse:
    """What a user changes about the graph folder of a model; None: as it was.

    graph: where it is. work, memory: as in :class:`Resources`. workers: tasks at a time. engine: where they run; not
    remembered.
    """

    graph: Path | None = None
    work: Path | None = None
    memory: int | None = None
    workers: int | None = None
    engine: "Tasks | None" = None


AS_BEFORE = FolderUse()


def find_graph(model: Path, digest: str, use: FolderUse) -> "tuple[GraphFolder, Resources]":
    """The graph folder of a model, and the resources to compute on it. digest: that of the graph folder.

    What ``use`` says is remembered with the next version (:func:`write_place`); reading changes nothing.
    """
    from graphfcl.runtime.resources import Resources
    from graphfcl.runtime.tasks import Tasks

    place = _read(model)
    folder = _open(model, place, use, digest)
    if use.work is not None:
        need_folder(use.work, "--work")
    work = use.work or _work_folder(model, place.get("work"))
    memory = use.memory or _whole(place.get("memory"), USUAL_MEMORY)
    workers = use.workers or _whole(place.get("workers"), 1)
    resources = Resources(
        Path(work), memory, replace(use.engine or Tasks(), workers=workers, folder=Path(work) / "tasks")
    )
    return folder, resources


def graph_at(path: Path) -> "AnyGraph":
    """A graph folder for a model that computes on it as on the one before."""
    from graphfcl.graph.folder import GraphFolder
    from graphfcl.runtime.resources import Resources

    return GraphFolder.open(path, Resources(path / WORK, USUAL_MEMORY))


def work_folder(model: Path) -> Path | None:
    """The work folder of a model on a graph folder; None if it has none."""
    stored = _read(model)
    return _work_folder(model, stored.get("work")) if stored else None


def seen_at(model: Path) -> str | None:
    """Where the graph folder of a model was seen last, as it was written down."""
    place = _read(model).get("graph")
    where = place.get("full") if isinstance(place, dict) else None
    return where if isinstance(where, str) else None


def write_place(model: Path, folder: "GraphFolder", resources: "Resources") -> None:
    """Remember where the graph folder of a model is, and the resources to compute on it."""
    content = {
        "graph": _both(model, folder.path),
        "work": _both(model, resources.work),
        "memory": resources.memory,
        "workers": resources.workers,
    }
    if _read(model) != content:
        make_folder(model)
        write_bytes(model / PLACE, canonical_json(content))


def _open(model: Path, place: dict[str, Any], use: FolderUse, digest: str) -> "GraphFolder":
    """The graph folder of a digest: where the user says, or else at the first of the places where it was."""
    from graphfcl.graph.folder import GraphFolder

    fix = "say where that is with --graph DIR; the next verb that changes the model, such as `learn`, remembers it"
    if use.graph is not None:
        places = [use.graph]
    else:
        places = [path for path in _places(model, place.get("graph")) if (path / "manifest.json").is_file()]
    if not places:
        where = seen_at(model)
        seen = f"; it was {where}" if where else ""
        raise InputError(f"the graph folder of {model} is not where it was{seen}: {fix}.")
    wrong = []
    for path in places:
        try:
            folder = GraphFolder.open(path)
        except InputError as error:
            wrong.append(error)
            continue
        if folder.sha256 == digest:
            return folder
    if len(wrong) == len(places):
        raise wrong[0]
    raise InputError(f"{places[0]} is not the graph folder that {model} was fitted on (its digest differs): {fix}.")


def _places(model: Path, written: Any) -> tuple[Path, ...]:
    """The places that were written: beside the model if the two moved together, and where it was."""
    if not isinstance(written, dict) or not all(isinstance(written.get(key), str) for key in ("beside", "full")):
        return ()
    return Path(os.path.normpath(model.absolute() / written["beside"])), Path(written["full"])


def _work_folder(model: Path, written: Any) -> Path:
    """The one that was written, or the usual one."""
    places = _places(model, written) or (model / WORK,)
    return next((path for path in places if path.is_dir()), places[0])


def _both(model: Path, path: Path) -> dict[str, str]:
    full = path.absolute()
    return {"beside": os.path.relpath(full, model.absolute()), "full": str(full)}


def _whole(written: Any, default: int) -> int:
    return written if type(written) is int and written > 0 else default


def _read(model: Path) -> dict[str, Any]:
    try:
        place = json.loads((model / PLACE).read_bytes()) if (model / PLACE).is_file() else {}  # and no pipe
    except (OSError, ValueError, RecursionError):
        return {}
    return place if isinstance(place, dict) else {}
