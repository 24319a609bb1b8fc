"""Where the graph folder of a model is, and which resources may be used: a small file beside the versions.

Versions name the graph folder only by its digest, so they do not change if it moves. This file holds its last known
place, relative to the model and as an absolute path, and the place of the work folder. It may be rewritten at any time.
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
    """Changes to the use of a model's graph folder. None: as before.

    Attributes:
        graph: Place of the graph folder.
        work: Work folder, as in :class:`Resources`.
        memory: Bytes of memory, as in :class:`Resources`.
        workers: Number of tasks that run at the same time.
        engine: Where tasks run; this is not remembered.
    """

    graph: Path | None = None
    work: Path | None = None
    memory: int | None = None
    workers: int | None = None
    engine: "Tasks | None" = None


AS_BEFORE = FolderUse()


def find_graph(model: Path, digest: str, use: FolderUse) -> "tuple[GraphFolder, Resources]":
    """Find the graph folder with a digest, and the resources to compute on it.

    The next version remembers the values in ``use`` (:func:`write_place`); reading changes nothing.
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
    """Open a graph folder that replaces the graph folder of a model."""
    from graphfcl.graph.folder import GraphFolder
    from graphfcl.runtime.resources import Resources

    return GraphFolder.open(path, Resources(path / WORK, USUAL_MEMORY))


def work_folder(model: Path) -> Path | None:
    """Return the work folder of a model on a graph folder; None for other models."""
    stored = _read(model)
    return _work_folder(model, stored.get("work")) if stored else None


def seen_at(model: Path) -> str | None:
    """Return the last known place of a model's graph folder."""
    place = _read(model).get("graph")
    where = place.get("full") if isinstance(place, dict) else None
    return where if isinstance(where, str) else None


def write_place(model: Path, folder: "GraphFolder", resources: "Resources") -> None:
    """Store the place of a model's graph folder, and the resources to compute on it."""
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
    """Open the graph folder with a digest: at the user's place, or at the first known place that has it."""
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
    """Return the stored places: relative to the model, for the case that both moved together, and absolute."""
    if not isinstance(written, dict) or not all(isinstance(written.get(key), str) for key in ("beside", "full")):
        return ()
    return Path(os.path.normpath(model.absolute() / written["beside"])), Path(written["full"])


def _work_folder(model: Path, written: Any) -> Path:
    """Return the stored work folder, or the default one."""
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
