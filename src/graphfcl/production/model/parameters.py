"""The parameters of a classifier in scikit-learn's form, including each setting of its method."""

from collections.abc import Mapping
from typing import Any

from graphfcl.errors import InputError, did_you_mean
from graphfcl.methods import find_method, flat_settings, settings_as_json
from graphfcl.production.model.parts import settings_of

SETTING = "settings__"  # prefix of the method's settings among the parameters
CHANGEABLE = ("way", "shot", "max_loss")  # training does not depend on these parameters, so a fitted model accepts them


def with_settings(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Add every setting of the method, as ``settings__NAME``, to a constructor's arguments."""
    method = find_method(parameters["method"])
    settings = method.settings_with({**method.learner.production_settings, **parameters["settings"]})
    flat = flat_settings(settings_as_json(settings))
    return {**parameters, **{f"{SETTING}{name.replace('.', '__')}": value for name, value in flat.items()}}


def changed_parameters(parameters: Mapping[str, Any], changes: Mapping[str, Any], *, fitted: bool) -> dict[str, Any]:
    """Return a constructor's arguments after some changes, which may name settings; refuse unusable ones."""
    for name in changes:
        if name not in parameters and not name.startswith(SETTING):
            raise InputError(f"GraphClassifier has no parameter {name!r}: {did_you_mean(name, [*parameters])}")
        if fitted and name not in CHANGEABLE:
            raise InputError(
                f"this classifier is fitted, so {name} cannot change: make a new one, as sklearn.base.clone does."
            )
    own = {name.removeprefix(SETTING): value for name, value in changes.items() if name.startswith(SETTING)}
    changed = {**parameters, **{name: value for name, value in changes.items() if not name.startswith(SETTING)}}
    if own:
        named = flat_settings({name.replace("__", "."): value for name, value in own.items()})
        changed["settings"] = {**settings_of(changed["settings"]), **named}
        find_method(changed["method"]).settings_with(changed["settings"])
    return changed


def refuse_targets(y: object) -> None:
    """Refuse the classes ``y`` that scikit-learn passes beside features."""
    if y is not None:
        raise InputError(
            "fit takes a graph, which holds features, edges and classes, and no y: give from_scipy(adjacency, X, y) or "
            "from_frames(nodes, edges), outside a pipeline that changes features."
        )
