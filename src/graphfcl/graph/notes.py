"""Notes of a graph that whoever makes it in Python is told at once: a graph alone shows them to nobody."""

import sys
import warnings
from collections.abc import Iterable

from graphfcl.errors import GraphNote

NO_FEATURES = "The graph has no features: only its edges tell its nodes apart."


def is_serious(note: str) -> bool:
    """Whether a model of the graph may be of no use."""
    return note.startswith("Warning") or note == NO_FEATURES


def warn_of_serious(notes: Iterable[str]) -> None:
    """Warn of what is serious among the notes of a new graph."""
    _warn(note for note in notes if is_serious(note))


def warn_of_others(notes: Iterable[str]) -> None:
    """Warn of all else, where nobody will see the graph."""
    _warn(note for note in notes if not is_serious(note))


def _warn(notes: Iterable[str]) -> None:
    for note in notes:
        warnings.warn(note, GraphNote, stacklevel=_frames_of_this_package())


def _frames_of_this_package() -> int:
    """A warning names the line of the user's that led to it: so many calls above the one that warns."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "graphfcl":
        level, frame = level + 1, frame.f_back
    return level
