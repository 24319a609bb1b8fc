"""What the package raises on purpose."""


class GraphfclError(Exception):
    """Base of the errors below; the command line prints the message without a traceback."""


class InputError(GraphfclError, ValueError):
    """A file, an option or an argument that cannot be used (exit code 2).

    The message is one sentence that says what is wrong, where, and how to mend it.
    """


class DivergenceError(GraphfclError):
    """Training went wrong (exit code 1). The message says when, and what to try."""


class GraphfclWarning(UserWarning):
    """Something was left out or changed that the user should know of."""
