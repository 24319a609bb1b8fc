"""Scores that tell how little a node looks like the known classes.

A score is added by one file and one import line below. A fit measures every score in its rehearsal and keeps the best
one; of equal ones it keeps the first in the order of the lines.
"""
# ruff: noqa: I001, F401

from graphfcl.errors import InputError, did_you_mean
from graphfcl.production.strangeness.contract import Strangeness
from graphfcl.production.strangeness.probability import PROBABILITY
from graphfcl.production.strangeness.score import SCORE
from graphfcl.production.strangeness.energy import ENERGY

# Every score that is imported above, in the order of the lines.
STRANGENESS: tuple[Strangeness, ...] = tuple(each for each in list(globals().values()) if isinstance(each, Strangeness))


def find_strangeness(name: str) -> Strangeness:
    """The score of a name."""
    known = {each.name: each for each in STRANGENESS}
    if name not in known:
        raise InputError(f"there is no strangeness score {name!r}: {did_you_mean(name, list(known))}")
    return known[name]


__all__ = ["STRANGENESS", "Strangeness", "find_strangeness"]
