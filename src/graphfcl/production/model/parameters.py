"""The parameters of a classifier, in scikit-learn's manner: checked when they are given, read and set by name."""

import math
from collections.abc import Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any

from graphfcl.errors import InputError, did_you_mean
from graphfcl.methods import find_method
from graphfcl.production.labels.arguments import seed_of, shown, whole_number
from graphfcl.production.model.packing import name_of_method
from graphfcl.production.model.parts import Configuration

if TYPE_CHECKING:
    from graphfcl.production.changes.live_model import LiveModel

NAMES = ("method", "settings", "way", "shot", "seed", "max_loss", "standardise", "device")
OF_A_FITTED_MODEL = ("way", "shot", "max_loss")  # all others are in what was trained


def checked(
    method: Any, settings: Any, *, way: Any, shot: Any, seed: Any, max_loss: Any, standardise: Any
) -> Configuration:
    """The configuration that these parameters make; one sentence for a parameter that cannot be used."""
    name = find_method(method if isinstance(method, str) else name_of_method(method)).name
    if settings is not None and not isinstance(settings, Mapping):
        raise InputError(f"settings is {shown(settings)}: give a mapping of names to values, or None.")
    counts = {"way": whole_number(way, "way", 2), "shot": whole_number(shot, "shot", 5)}
    for what, count in counts.items():
        if count < 1:
            raise InputError(f"{what} is {count}: give 1 or a larger whole number.")
    if isinstance(max_loss, bool) or not isinstance(max_loss, Real) or not math.isfinite(max_loss):
        raise InputError(f"max_loss is {shown(max_loss)}: give a share of accuracy, such as 0.05.")
    return Configuration(
        name, dict(settings or {}), counts["way"], counts["shot"], seed_of(seed), float(max_loss), bool(standardise)
    )


def given_by(configuration: Configuration) -> dict[str, Any]:
    """The parameters that make a configuration; the device is none of it."""
    return {name: getattr(configuration, name) for name in NAMES if name != "device"}


def values_of(model: "LiveModel") -> dict[str, Any]:
    """All parameters of a model as they are; settings as a copy."""
    return {name: dict(model.settings) if name == "settings" else getattr(model, name) for name in NAMES}


def with_changes(model: "LiveModel", given: Mapping[str, Any], *, fitted: bool) -> dict[str, Any]:
    """The parameters of a model with some changed; an error names one that is none, or that a fit has settled."""
    for name in given:
        if name not in NAMES:
            raise InputError(f"GraphClassifier has no parameter {name!r}: {did_you_mean(name, NAMES)}")
        if fitted and name not in OF_A_FITTED_MODEL:
            raise InputError(
                f"this classifier is fitted, so {name} cannot change: make a new one, as sklearn.base.clone does."
            )
    return {**values_of(model), **given}
