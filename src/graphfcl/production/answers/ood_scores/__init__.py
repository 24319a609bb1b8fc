"""Measures of how little a node looks like the known classes.

A measure is added by one file and one import line below. A fit weighs all of them in its rehearsal (``weighing.py``).
"""
# ruff: noqa: I001, F401

from graphfcl.errors import InputError, did_you_mean
from graphfcl.production.answers.ood_scores.contract import Evidence, Measure
from graphfcl.production.answers.ood_scores.energy import ENERGY, ENERGY_AROUND
from graphfcl.production.answers.ood_scores.entropy import ENTROPY, ENTROPY_AROUND
from graphfcl.production.answers.ood_scores.labels import UNLABELLED_AROUND
from graphfcl.production.answers.ood_scores.few_shot import FEW_SHOT

# Every measure that is imported above, in the order of the lines.
MEASURES: tuple[Measure, ...] = tuple(each for each in list(globals().values()) if isinstance(each, Measure))


def find_measure(name: str) -> Measure:
    """The measure of a name."""
    known = {each.name: each for each in MEASURES}
    if name not in known:
        raise InputError(f"there is no measure of ood_score {name!r}: {did_you_mean(name, list(known))}")
    return known[name]


__all__ = ["ENERGY", "ENERGY_AROUND", "MEASURES", "Evidence", "Measure", "find_measure"]
