"""Shell completion. It must be fast, so nothing here imports torch.

Where a completion is empty, the shell offers files.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

MOST_FOLDERS = 500  # to look at
DEPTH = 3  # levels of folders below the one that the user typed


def choices(*words: str) -> Callable[[str], list[str]]:
    """Make the completion of an option that takes one of a few words."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return complete


def method_names(incomplete: str) -> list[str]:
    """Names of methods, including installed plug-ins, which are not imported."""
    from graphfcl.methods.registry import REGISTRY

    return [name for name in REGISTRY.names() if name.startswith(incomplete)]


def graph_names(incomplete: str) -> list[str]:
    """Names of graphs, including installed plug-ins. The shell completes paths."""
    from graphfcl.datasets.registry import REGISTRY

    return [name for name in REGISTRY.names() if name.startswith(incomplete)]


def listed(complete: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """Make a completion of the last name in a list separated by commas."""

    def complete_last(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [f"{before}{comma}{name}" for name in complete(last)]

    return complete_last


def model_folders(incomplete: str) -> list[str]:
    """Model folders, at most a few levels below the typed path."""
    typed = Path(incomplete)
    folder = typed if incomplete.endswith("/") else typed.parent
    names = sorted(str(path) for path in islice(_folders(folder, DEPTH), MOST_FOLDERS) if _is_model(path))
    prefix = "./" if incomplete.startswith("./") else ""  # Path drops it
    return [f"{prefix}{name}" for name in names if f"{prefix}{name}".startswith(incomplete)]


def _is_model(path: Path) -> bool:
    return (path / "model.sqlite").is_file()


def _folders(folder: Path, depth: int) -> Iterator[Path]:
    """Yield the folders below a folder: first its direct subfolders, then those inside each of them."""
    try:
        inside = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    except OSError:
        return
    yield from inside
    if depth > 1:
        for path in inside:
            if not _is_model(path):  # a model folder contains no other models
                yield from _folders(path, depth - 1)
