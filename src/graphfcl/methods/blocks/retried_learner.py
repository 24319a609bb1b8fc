"""What a learner computes in a work folder is computed again if a file there turns out to be damaged."""

from collections.abc import Callable
from typing import TypeVar

from graphfcl.methods.blocks.damaged_files import DamagedFile, computed_again
from graphfcl.methods.learner import Learner

Result = TypeVar("Result")


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
