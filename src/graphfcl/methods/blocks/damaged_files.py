"""Files of a work folder that turn out to be damaged: they go, and what met them is computed again."""

import warnings
from collections.abc import Callable
from typing import TypeVar

from graphfcl.errors import GraphfclWarning, InputError
from graphfcl.methods.learner import Learner

TRIES = 50  # each one removes a file; more than that is a disk that fails

Result = TypeVar("Result")


class DamagedFile(InputError):
    """A file of a work folder was missing or damaged. It was removed, so that the next run computes it again."""


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


def computed_with(learner: Learner, compute: Callable[[Learner], Result]) -> Result:
    """What ``compute`` makes of a learner, which it may change.

    A learner remembers tables of its work folder. After one of them was damaged, ``compute`` gets another learner, made
    of the state that the first one had, which remembers none.
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
