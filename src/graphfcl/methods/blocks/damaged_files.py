"""Files of a work folder that turn out to be damaged: they go, and what met them is computed again."""

import warnings
from collections.abc import Callable
from typing import TypeVar

from graphfcl.errors import GraphfclWarning, InputError

TRIES = 50  # each one removes a file; more than that is a disk that fails

Result = TypeVar("Result")


class DamagedFile(InputError):
    """A file of a work folder was missing or damaged. It is gone now, so that whoever starts again computes it."""


def computed_again(compute: Callable[[], Result]) -> Result:
    """What ``compute`` returns, which is called again when it met a damaged file; what is whole is not computed again.

    compute: may be called several times, each time from the start.
    """
    for _ in range(TRIES):
        try:
            return compute()
        except DamagedFile as error:
            warnings.warn(f"{str(error).partition(':')[0]}: it is computed again.", GraphfclWarning, 3)
    return compute()
