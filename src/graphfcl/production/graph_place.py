"""Where the graph folder of a model lies, and what may be used to compute on it: a small file beside the versions.

Versions name the graph folder by its digest alone, so they stay as they are if it moves. This file says where it was
seen last, relative to the model and as a full path, and where the work folder is. It may be written again at any time.
"""

import json
import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphfcl.errors import InputError
from graphfcl.files import canonical_json, make_folder, write_bytes

if TYPE_CHECKING:  # whoever asks a model in memory does not wait for scipy
    from graphfcl.graph.folder import GraphFolder
    from graphfcl.graph.visible_folder import Means
    from graphfcl.tasks import Tasks

PLACE = "graph.json"
WORK = "work"
USUAL_MEMORY = 4 << 30  # bytes, if the file is lost


@dataclass(frozen=True)
class FolderUse:
    """What a user says anew about the graph folder of a model; None: as it was.

    graph: where it is. work, memory: as in :class:`Means`. workers: tasks at a time. engine: where they run, which is
    not remembered.
    """

    graph: Path | None = None
    work: Path | None = None
    memory: int | None = None
    workers: int | None = None
    engine: "Tasks | None" = None

    def says_something(self) -> bool:
        """Whether it says what is remembered."""
        return any(each is not None for each in (self.graph, self.work, self.memory, self.workers))


def find_graph(model: Path, digest: str, use: FolderUse) -> "tuple[GraphFolder, Means]":
    """The graph folder of a model, and the means to compute on it. digest: that of the graph folder."""
    from graphfcl.graph.visible_folder import Means
    from graphfcl.tasks import Tasks

    said = _read(model)
    folder = _open(model, said, use)
    if folder.digest != digest:
        raise InputError(
            f"{folder.path} is not the graph folder that {model} was fitted on (its digest differs): say where that "
            "one is with --graph DIR."
        )
    work = use.work or _resolved(model, said.get("work"), "work") or model / WORK
    memory = use.memory or _whole(said.get("memory"), USUAL_MEMORY)
    workers = use.workers or _whole(said.get("workers"), 1)
    means = Means(Path(work), memory, replace(use.engine or Tasks(), workers=workers, folder=Path(work) / "tasks"))
    if use.says_something():
        with suppress(OSError, InputError):  # whoever may only read says it again the next time
            write_place(model, folder, means)
    return folder, means


def seen_at(model: Path) -> str | None:
    """Where the graph folder of a model was seen last, as it was written down."""
    given = _read(model).get("graph")
    where = given.get("full") if isinstance(given, dict) else None
    return where if isinstance(where, str) else None


def write_place(model: Path, folder: "GraphFolder", means: "Means") -> None:
    """Say where the graph folder of a model is."""
    content = {
        "graph": _both(model, folder.path),
        "work": _both(model, means.work),
        "memory": means.memory,
        "workers": means.workers,
    }
    if _read(model) != content:
        make_folder(model)
        write_bytes(model / PLACE, canonical_json(content))


def _open(model: Path, said: dict[str, Any], use: FolderUse) -> "GraphFolder":
    from graphfcl.graph.folder import GraphFolder

    if use.graph is not None:
        return GraphFolder.open(use.graph)
    path = _resolved(model, said.get("graph"), "manifest.json")
    if path is None:
        given = said.get("graph")
        where = given.get("full") if isinstance(given, dict) else None
        seen = f"; it was {where}" if isinstance(where, str) else ""
        raise InputError(f"the graph folder of {model} is not where it was{seen}: say where it is with --graph DIR.")
    return GraphFolder.open(path)


def _resolved(model: Path, given: Any, holding: str) -> Path | None:
    """A path that was written: beside the model if the two moved together, or else where it was."""
    if not isinstance(given, dict) or not all(isinstance(given.get(key), str) for key in ("beside", "full")):
        return None
    places = (Path(os.path.normpath(model.absolute() / given["beside"])), Path(given["full"]))
    if holding == "work":
        return next((path for path in places if path.is_dir()), places[0])
    return next((path for path in places if (path / holding).is_file()), None)


def _both(model: Path, path: Path) -> dict[str, str]:
    full = path.absolute()
    return {"beside": os.path.relpath(full, model.absolute()), "full": str(full)}


def _whole(given: Any, otherwise: int) -> int:
    return given if type(given) is int and given > 0 else otherwise


def _read(model: Path) -> dict[str, Any]:
    try:
        said = json.loads((model / PLACE).read_bytes())
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}
