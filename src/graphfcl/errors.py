"""Errors and warnings for users, and text that is safe to print: control characters are shown as escapes."""

import difflib
import re
from collections.abc import Sequence

# Control characters (C0, DEL, C1), line separators, controls of the writing direction, the byte order mark, and
# surrogates, which UTF-8 cannot encode. Zero-width joiners are not included: many scripts need them.
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
SHOWN = 60  # longest excerpt of a user's text in a message, in characters


def printable(text: str) -> str:
    """Replace each control character with an escape such as ``\\x1b``."""
    return CONTROL.sub(lambda match: match.group().encode("unicode_escape").decode("ascii"), text)


def printable_json(text: str) -> str:
    """Escape the control characters of a JSON text, except line breaks. Its values stay the same."""
    return CONTROL.sub(lambda match: match.group() if match.group() == "\n" else f"\\u{ord(match.group()):04x}", text)


def quoted(value: object) -> str:
    """Quote a user's text for a message: printable, and shortened if it is long."""
    text = str(value)
    return repr(text) if len(text) <= SHOWN else f"{text[:SHOWN]!r}… ({len(text):,} characters)"


def shown(value: object) -> str:
    """Write a value as Python does, shortened if it is long. Quotes distinguish the text '3' from the number 3."""
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def counted(number: int, one: str) -> str:
    """Write a number with its noun: `1 node`, `2,000 classes`. ``one`` is the noun in the singular."""
    many = f"{one}es" if one.endswith("s") else f"{one}s"
    return f"{number:,} {one if number == 1 else many}"


class GraphfclError(Exception):
    """Base of graphfcl's errors; the command line prints the message without a traceback.

    A message may contain a user's ids and names, so control characters in it are escaped. The command line ends with
    ``exit_code``.
    """

    exit_code = 1

    def __init__(self, message: object = "") -> None:
        super().__init__(printable(str(message)))


class InputError(GraphfclError, ValueError):
    """A file, an option or an argument that cannot be used (exit code 2).

    The message says what is wrong, where, and how to fix it. This is also a :class:`ValueError`.

    Args:
        message: Text of the error. Control characters in it are escaped.

    Examples:
        >>> from graphfcl import InputError, load_dataset
        >>> try:
        ...     load_dataset("debain")
        ... except InputError as error:
        ...     print(error)
        there is no dataset or file 'debain': did you mean 'debian'?
    """

    exit_code = 2


class AccuracyLossError(GraphfclError):
    """A change that would lower the accuracy of known classes too much (exit code 3).

    The model stays unchanged. :meth:`GraphClassifier.guarded` and ``--max-loss`` set the limit.

    Args:
        message: Text of the error. Control characters in it are escaped.

    Examples:
        >>> from graphfcl import AccuracyLossError
        >>> def learn_or_keep(model, supports):
        ...     try:
        ...         with model.guarded(max_loss=0.02):
        ...             model.learn(supports)
        ...     except AccuracyLossError as error:
        ...         print(f"The model is unchanged: {error}")
    """

    exit_code = 3


class DivergenceError(GraphfclError):
    """Training that diverged, for example to scores that are NaN (exit code 1).

    The message says when it happened and what to try.

    Args:
        message: Text of the error. Control characters in it are escaped.

    Examples:
        >>> from graphfcl import DivergenceError
        >>> try:
        ...     raise DivergenceError("the loss is NaN after step 12: try a smaller learning rate.")
        ... except DivergenceError as error:
        ...     print(error)
        the loss is NaN after step 12: try a smaller learning rate.
    """


class GraphfclWarning(UserWarning):
    """A warning about input that was left out or changed.

    Examples:
        >>> import warnings
        >>> from graphfcl import GraphfclWarning
        >>> warnings.simplefilter("error", GraphfclWarning)  # treat every warning of graphfcl as an error
    """


class GraphNote(GraphfclWarning):
    """A note about a graph that was just loaded or built; the command line prints such notes itself."""


def did_you_mean(word: str, options: Sequence[str], fallback: str | None = None, *, cutoff: float = 0.6) -> str:
    """Suggest the option most similar to an unknown word, or ``fallback`` (by default, the list of options).

    ``cutoff`` is the least similarity of a suggestion, from 0 to 1, as :func:`difflib.get_close_matches` defines it.
    Case is ignored.
    """
    by_folded = {each.casefold(): each for each in reversed(options)}
    closest = difflib.get_close_matches(word.casefold(), by_folded, n=1, cutoff=cutoff)
    if closest:
        return f"did you mean {quoted(by_folded[closest[0]])}?"
    return f"there are {', '.join(options)}." if fallback is None else fallback


# Secrets that a message must not repeat: SQL queries, user:password@ in a URL, password=… and the like.
# The literal text key=value, which help texts use, is not a secret.
SECRETS = re.compile(
    r"(?P<kept>sql:)(?!['…]).+"
    r"|(?P<url>//)[^\s/@]+@"
    r"|(?P<key>(?:password|passwd|pwd|secret|token|\w*key)\s*[=:]\s*)(?!value\b)(?:'[^']*'?|\"[^\"]*\"?|[^\s&;,)'\"]+)",
    re.DOTALL | re.IGNORECASE,
)


def without_secrets(text: str) -> str:
    """Replace queries (``sql:…``) and the passwords of connection strings with ``…``."""
    return SECRETS.sub(
        lambda match: f"{match['kept'] or match['url'] or match['key']}…{'@' * bool(match['url'])}", text
    )


def in_one_line(error: BaseException) -> str:
    """Write the type and message of another library's error in one line of at most 200 characters and the type."""
    text = " ".join(str(error).split())[:200]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
