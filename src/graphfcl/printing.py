"""Text that may be printed: what a terminal or a reader's eye would obey is shown as an escape."""

import re

# Control characters (C0, DEL, C1), separators of lines, the controls of writing direction, the byte order mark, and
# surrogates, which no file can hold. Joiners are letters' business in many scripts and stay.
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
SHOWN = 60  # characters of somebody's text that a message shows


def printable(text: str) -> str:
    """The same text, with an escape such as ``\\x1b`` for each control character."""
    return CONTROL.sub(lambda found: _escape(found.group()), text)


def printable_json(text: str) -> str:
    """JSON that may be printed; its values stay the same. text: JSON, perhaps in several lines."""
    return CONTROL.sub(lambda found: found.group() if found.group() == "\n" else f"\\u{ord(found.group()):04x}", text)


def quoted(value: object) -> str:
    """Somebody's text in a message: in quotes, printable, and cut short if it is long."""
    text = str(value)
    return repr(text) if len(text) <= SHOWN else f"{text[:SHOWN]!r}… ({len(text):,} characters)"


def counted(number: int, one: str) -> str:
    """So many of something, as in `1 node` and `2,000 classes`. one: the English word for a single one."""
    many = f"{one}es" if one.endswith("s") else f"{one}s"
    return f"{number:,} {one if number == 1 else many}"


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
