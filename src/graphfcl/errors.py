"""What the package raises on purpose, and the hint that belongs to a word nobody knows."""

import difflib
from collections.abc import Sequence

from graphfcl.printing import printable, quoted


class GraphfclError(Exception):
    """Base of the errors below; the command line prints the message without a traceback.

    A message may hold a user's ids and names: control characters in it are escaped.
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(printable(str(message)))


class InputError(GraphfclError, ValueError):
    """A file, an option or an argument that cannot be used (exit code 2).

    The message is one sentence that says what is wrong, where, and how to fix it.
    """


class DivergenceError(GraphfclError):
    """Training went wrong (exit code 1). The message says when, and what to try."""


class GraphfclWarning(UserWarning):
    """Something was left out or changed that the user should know of."""


class GraphNote(GraphfclWarning):
    """A note of a graph that was made just now; the command line prints such notes itself."""


def did_you_mean(word: str, known: Sequence[str], otherwise: str | None = None, *, cutoff: float = 0.6) -> str:
    """A hint for a word that is not known: the nearest one, or what to say instead (by default, all there are).

    cutoff: how alike two words are, case aside: twice the letters that they share in order, over all that they have.
    """
    by_letters = {each.casefold(): each for each in reversed(known)}
    near = difflib.get_close_matches(word.casefold(), by_letters, n=1, cutoff=cutoff)
    if near:
        return f"did you mean {quoted(by_letters[near[0]])}?"
    return f"there are {', '.join(known)}." if otherwise is None else otherwise


def in_one_line(error: BaseException) -> str:
    """What an error of somebody else's code says."""
    text = " ".join(str(error).split())[:200]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
