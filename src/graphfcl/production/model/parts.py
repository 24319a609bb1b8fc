"""The parts of a model in production, and the parameters that configure it."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

from graphfcl.errors import InputError, shown
from graphfcl.graph.tables.columns import ReadColumns
from graphfcl.methods import Learner, find_method, flat_settings, is_own, register_method
from graphfcl.production.answers.calibration import Calibration
from graphfcl.production.graph import ModelGraph
from graphfcl.production.labels.label_store import LabelStore

PARAMETERS = ("method", "settings", "way", "shot", "seed", "max_loss", "standardise")


@dataclass(frozen=True)
class Configuration:
    """Parameters that a user chooses before a model is fitted.

    Attributes:
        method: Name of the method.
        settings: Settings by name, ``{"pretraining.epochs": 5}``; all others have their defaults.
        way: Number of classes that a session is expected to bring.
        shot: Number of supports per class that a session is expected to bring.
        seed: Seed of all random generators.
        max_loss: A change that costs older classes more balanced accuracy than this adds a warning to the history.
        standardise: Scale dense features to mean 0 and standard deviation 1 over the training nodes of the fit.
        columns: Columns of the tables that the graph of the fit was read from; later tables are read by them.
    """

    method: str
    settings: Mapping[str, Any]
    way: int
    shot: int
    seed: int
    max_loss: float
    standardise: bool = True
    columns: ReadColumns | None = None

    @property
    def fold(self) -> bool:
        """Whether names of classes are folded, as in :class:`LabelStore`."""
        return self.columns is not None and bool(self.columns.fold)

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of a classifier with this configuration; the device is not among them."""
        return {name: getattr(self, name) for name in PARAMETERS}


@dataclass(frozen=True, eq=False)
class ModelParts:
    """All parts of a model. All but the learner are immutable.

    For a model in a folder, graph, learner and label store are read when they are first used.
    """

    configuration: Configuration
    graph: ModelGraph
    learner: Learner
    label_store: LabelStore
    calibration: Calibration

    @classmethod
    def lazy(cls, configuration: Configuration, calibration: Calibration, read: Callable[[str], Any]) -> "ModelParts":
        """Make parts of which ``read`` reads graph, learner and label store, by name, when they are needed."""
        parts = object.__new__(cls)
        parts.__dict__.update(configuration=configuration, calibration=calibration, _read=read)
        return parts

    def __getattr__(self, name: str) -> Any:
        """Read a part that has not been read yet."""
        if "_read" not in self.__dict__ or name not in ("graph", "learner", "label_store"):
            raise AttributeError(f"a model has no part {name!r}")
        self.__dict__[name] = self._read(name)
        return self.__dict__[name]

    def read(self) -> "ModelParts":
        """Return the same parts, all of them read and verified."""
        return replace(self) if "_read" in self.__dict__ else self


def whole_number(value: Any, what: str, example: int) -> int:
    """Return a whole number of any numeric type as int; ``what`` names it in messages."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InputError(f"{what} is {shown(value)}: give a whole number, such as {example}.")
    return int(value)


def seed_of(value: Any) -> int:
    """Return the seed of a random generator, checked."""
    seed = whole_number(value, "the seed", 0)
    if seed < 0:
        raise InputError(f"the seed is {seed}: give 0 or a larger whole number.")
    return seed


def list_of_names(value: Any, what: str) -> tuple[Any, ...]:
    """Return names of classes as a tuple; ``what`` names them in messages."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        example = f", such as [{shown(value)}]" if isinstance(value, str) else " of names"
        raise InputError(f"{what} are {shown(value)}: give a list{example}.")
    return tuple(value)


def make_configuration(
    method: Any, settings: Any, *, way: Any, shot: Any, seed: Any, max_loss: Any, standardise: Any
) -> Configuration:
    """Make a configuration from the parameters of a classifier; a parameter that cannot be used is an error."""
    name = find_method(method if isinstance(method, str) else name_of_method(method)).name
    counts = {"way": whole_number(way, "way", 2), "shot": whole_number(shot, "shot", 5)}
    for what, count in counts.items():
        if count < 1:
            raise InputError(f"{what} is {count}: give 1 or a larger whole number.")
    if isinstance(max_loss, bool) or not isinstance(max_loss, Real) or not -math.inf < float(max_loss) <= 1:
        raise InputError(
            f"max_loss is {shown(max_loss)}: give a share of accuracy of at most 1, such as 0.05 for 5 points."
        )
    return Configuration(
        name,
        settings_of(settings),
        counts["way"],
        counts["shot"],
        seed_of(seed),
        float(max_loss),
        bool(standardise),
    )


def settings_of(settings: Any) -> dict[str, Any]:
    """Return the user's settings, with dots in the names of nested ones."""
    if settings is not None and not isinstance(settings, Mapping):
        raise InputError(f"settings is {shown(settings)}: give a mapping of names to values, or None.")
    return flat_settings(settings or {})


def name_of_method(learner: type[Learner]) -> str:
    """Return the name of a learner class; a class from outside graphfcl is registered."""
    return learner.name if is_own(learner) else register_method(learner).name
