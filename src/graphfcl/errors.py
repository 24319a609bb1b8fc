"""Errors and warnings for users, and text that is safe to print: control characters are shown as escapes."""

import difflib
import re
from collections.abc import Sequence

# Control characters (C0, DEL, C1), separators of lines, the controls of writing direction, the byte order mark, and
# surrogates, which no file can hold. Joiners are letters' business in many scripts and stay.
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
SHOWN = 60  # characters of a user's text that a message shows


def printable(text: str) -> str:
    """The same text, with an escape such as ``\\x1b`` for each control character."""
    return CONTROL.sub(lambda match: match.group().encode("unicode_escape").decode("ascii"), text)


def printable_json(text: str) -> str:
    """JSON that may be printed; its values stay the same. text: JSON, perhaps in several lines."""
    return CONTROL.sub(lambda match: match.group() if match.group() == "\n" else f"\\u{ord(match.group()):04x}", text)


def quoted(value: object) -> str:
    """A user's text in a message: quoted, printable, and shortened if it is long."""
    text = str(value)
    return repr(text) if len(text) <= SHOWN else f"{text[:SHOWN]!r}… ({len(text):,} characters)"


def shown(value: object) -> str:
    """A value as Python writes it, cut short: '3' is a text, 3 a number."""
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def counted(number: int, one: str) -> str:
    """So many of something, as in `1 node` and `2,000 classes`. one: the English word for a single one."""
    many = f"{one}es" if one.endswith("s") else f"{one}s"
    return f"{number:,} {one if number == 1 else many}"


class GraphfclError(Exception):
    """Base of the errors below; the command line prints the message without a traceback.

    A message may hold a user's ids and names: control characters in it are escaped. exit_code: of the command line.
    """

    exit_code = 1

    def __init__(self, message: object = "") -> None:
        super().__init__(printable(str(message)))


class InputError(GraphfclError, ValueError):
    """A file, an option or an argument that cannot be used (exit code 2).

    The message is one sentence that says what is wrong, where, and how to fix it.
    """

    exit_code = 2


class AccuracyLossError(GraphfclError):
    """A change that would cost known classes more accuracy than is allowed (exit code 3); the model is unchanged."""

    exit_code = 3


class DivergenceError(GraphfclError):
    """Training went wrong (exit code 1). The message says when, and what to try."""


class GraphfclWarning(UserWarning):
    """Something was left out or changed that the user should know of."""


class GraphNote(GraphfclWarning):
    """A note of a graph that was made just now; the command line prints such notes itself."""


def did_you_mean(word: str, options: Sequence[str], fallback: str | None = None, *, cutoff: float = 0.6) -> str:
    """A hint for an unknown word: the most similar option, or ``fallback`` (by default, the list of options).

    cutoff: how alike two words are, case aside: twice the letters that they share in order, over all that they have.
    """
    by_letters = {each.casefold(): each for each in reversed(options)}
    near = difflib.get_close_matches(word.casefold(), by_letters, n=1, cutoff=cutoff)
    if near:
        return f"did you mean {quoted(by_letters[near[0]])}?"
    return f"there are {', '.join(options)}." if fallback is None else fallback


# What a message must not repeat: a query, user:password@ of a URL, password=…, and the like (key=value is no secret).
SECRETS = re.compile(
    r"(?P<kept>sql:)(?!['…]).+"
    r"|(?P<url>//)[^\s/@]+@"
    r"|(?P<key>(?:password|passwd|pwd|secret|token|\w*key)\s*[=:]\s*)(?!value\b)(?:'[^']*'?|\"[^\"]*\"?|[^\s&;,)'\"]+)",
    re.DOTALL | re.IGNORECASE,
)


def without_secrets(text: str) -> str:
    """The same text, with ``…`` in place of queries (``sql:…``) and of passwords in connection strings."""
    return SECRETS.sub(
        lambda match: f"{match['kept'] or match['url'] or match['key']}…{'@' * bool(match['url'])}", text
    )


def in_one_line(error: BaseException) -> str:
    """The type and message of a foreign error, in one line."""
    text = " ".join(str(error).split())[:200]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
