"""What is raised when the content of a file is not what it should be."""

UNFIT = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    OSError,
    RecursionError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What code that was handed values of a wrong kind, size or shape may raise."""


class Damaged(ValueError):
    """The content of a file does not fit together; says which and how."""


def first_line(error: BaseException) -> str:
    """What another library's error says, in a few words."""
    text = str(error).strip()
    return text.splitlines()[0][:120] if text else type(error).__name__


def need(fits: bool, what: str) -> None:
    """Refuse what does not fit."""
    if not fits:
        raise Damaged(what)
