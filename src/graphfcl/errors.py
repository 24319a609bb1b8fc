"""What the package raises on purpose."""


class InputError(ValueError):
    """A file, an option or an argument that cannot be used.

    The message is one sentence that says what is wrong, where, and how to mend it. The command line prints it
    and ends with exit code 2.
    """


class GraphfclWarning(UserWarning):
    """Something was left out or changed that the user should know of."""
