"""What a model in production consists of, and the parameters that configure it."""

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
    """What a user chooses before a model is fitted.

    method: its name. settings: its settings by name, ``{"pretraining.epochs": 5}``; those not named have their
    defaults.
    way, shot: how many classes with how many supports a session is expected to bring. seed: repeats everything.
    max_loss: a change that costs older classes more balanced accuracy than this leaves a warning.
    standardise: dense features get mean 0 and deviation 1 over the train nodes of the fit.
    columns: those of the tables that the graph of the fit was read from; later tables are read by them.
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
        """That of :class:`LabelStore`."""
        return self.columns is not None and bool(self.columns.fold)

    def parameters(self) -> dict[str, Any]:
        """The parameters of a classifier that has this configuration; the device is no part of it."""
        return {name: getattr(self, name) for name in PARAMETERS}


@dataclass(frozen=True, eq=False)
class ModelParts:
    """Everything that a model consists of. All parts but the learner are immutable.

    Of a model in a folder, graph, learner and label store are read when they are first used.
    """

    configuration: Configuration
    graph: ModelGraph
    learner: Learner
    label_store: LabelStore
    calibration: Calibration

    @classmethod
    def lazy(cls, configuration: Configuration, calibration: Calibration, read: Callable[[str], Any]) -> "ModelParts":
        """Parts of which graph, learner and label store are read, by name, when they are needed."""
        parts = object.__new__(cls)
        parts.__dict__.update(configuration=configuration, calibration=calibration, _read=read)
        return parts

    def __getattr__(self, name: str) -> Any:
        """A part that has not been read yet."""
        if "_read" not in self.__dict__ or name not in ("graph", "learner", "label_store"):
            raise AttributeError(f"a model has no part {name!r}")
        self.__dict__[name] = self._read(name)
        return self.__dict__[name]

    def read(self) -> "ModelParts":
        """The same parts, all of them read and verified."""
        return replace(self) if "_read" in self.__dict__ else self


def whole_number(value: Any, what: str, example: int) -> int:
    """A whole number of any type that has them. what: what it is, for the message."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InputError(f"{what} is {shown(value)}: give a whole number, such as {example}.")
    return int(value)


def seed_of(value: Any) -> int:
    """A seed of a random generator."""
    seed = whole_number(value, "the seed", 0)
    if seed < 0:
        raise InputError(f"the seed is {seed}: give 0 or a larger whole number.")
    return seed


def list_of_names(value: Any, what: str) -> tuple[Any, ...]:
    """Names of classes. what: what they are, for the message."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        example = f", such as [{shown(value)}]" if isinstance(value, str) else " of names"
        raise InputError(f"{what} are {shown(value)}: give a list{example}.")
    return tuple(value)


def make_configuration(
    method: Any, settings: Any, *, way: Any, shot: Any, seed: Any, max_loss: Any, standardise: Any
) -> Configuration:
    """The configuration of some parameters of a classifier; a parameter that cannot be used is an error."""
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
    """The settings that a user gave, with a dot in the names of nested ones."""
    if settings is not None and not isinstance(settings, Mapping):
        raise InputError(f"settings is {shown(settings)}: give a mapping of names to values, or None.")
    return flat_settings(settings or {})


def name_of_method(learner: type[Learner]) -> str:
    """The name of a learner class, which is registered if it comes from outside."""
    return learner.name if is_own(learner) else register_method(learner).name
