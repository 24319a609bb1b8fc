"""Recovery from damaged files of a work folder: they are removed, and the computation is repeated."""

import warnings
from collections.abc import Callable
from typing import TypeVar

from graphfcl.errors import GraphfclWarning, InputError
from graphfcl.methods.learner import Learner

TRIES = 50  # each try removes a file; more damaged files mean that the disk fails

Result = TypeVar("Result")


class DamagedFile(InputError):
    """A file of a work folder was missing or damaged. It was removed, and the next run computes it again."""


def computed_again(compute: Callable[[], Result]) -> Result:
    """Return the result of ``compute``, and call it again if it finds a damaged file.

    ``compute`` may be called several times. It reads undamaged files instead of computing them again.
    """
    for _ in range(TRIES):
        try:
            return compute()
        except DamagedFile as error:
            warnings.warn(f"{str(error).partition(':')[0]}: it is computed again.", GraphfclWarning, 3)
    return compute()


def computed_with(learner: Learner, compute: Callable[[Learner], Result]) -> Result:
    """Return the result of ``compute``, which may change the learner, and repeat it if it finds a damaged file.

    A learner caches tables of its work folder. After a table was damaged, ``compute`` gets a new learner with the
    initial state of the first one and without its cache.
    """
    state, latest = learner.state(), [learner]

    def attempt() -> Result:
        try:
            return compute(latest[0])
        except DamagedFile:
            latest[0] = type(learner)(learner.settings, seed=learner.seed, device=learner.device)
            latest[0].load_state(state)
            if latest[0].last_tables is not None and learner.last_tables is not None:
                latest[0].last_tables.recall(learner.last_tables.names)
            raise

    return computed_again(attempt)
