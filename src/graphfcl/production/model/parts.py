"""What a model in production consists of."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from graphfcl.graph.column_names import ReadColumns
from graphfcl.methods import Learner
from graphfcl.production.answers.calibration import Calibration
from graphfcl.production.labels.label_store import LabelStore

if TYPE_CHECKING:
    from graphfcl.production.graph import ModelGraph


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


class PartSource(Protocol):
    """Where parts come from that have not been read yet."""

    @property
    def names(self) -> LabelStore:
        """A label_store that has the names of the classes, and no labelled nodes."""
        ...

    def part(self, name: str) -> Any:
        """``graph``, ``learner`` or ``label_store``; the same object every time."""
        ...


@dataclass(frozen=True, eq=False)
class ModelParts:
    """Everything that makes a model. Graph, label_store and calibration are immutable; the learner is not.

    Of a model that lies in a folder, graph, learner and label_store are read when they are first asked for.
    """

    configuration: Configuration
    graph: "ModelGraph"
    learner: Learner
    label_store: LabelStore
    calibration: Calibration

    @classmethod
    def from_source(cls, configuration: Configuration, calibration: Calibration, source: PartSource) -> "ModelParts":
        """Parts of which the larger ones are read later."""
        parts = object.__new__(cls)
        parts.__dict__.update(configuration=configuration, calibration=calibration, _source=source)
        return parts

    def __getattr__(self, name: str) -> Any:
        """A part that has not been read yet."""
        source = self.__dict__.get("_source")
        if source is None or name not in ("graph", "learner", "label_store"):
            raise AttributeError(f"a model has no part {name!r}")
        self.__dict__[name] = source.part(name)
        return self.__dict__[name]

    def __getstate__(self) -> dict[str, Any]:
        """A copy has all of them."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def read(self) -> "ModelParts":
        """The same with every part read and verified."""
        return self if "_source" not in self.__dict__ else ModelParts(**self.__getstate__())

    def configured(self, configuration: Configuration) -> "ModelParts":
        """The same with another configuration."""
        parts = object.__new__(ModelParts)
        parts.__dict__.update(self.__dict__, configuration=configuration)
        return parts

    def for_answers(self) -> "ModelParts":
        """Enough to turn scores into answers: the label_store has names, but need not have labelled nodes."""
        if "label_store" in self.__dict__ or "_source" not in self.__dict__:
            return self
        source: PartSource = self.__dict__["_source"]
        parts = object.__new__(ModelParts)
        parts.__dict__.update(self.__dict__, label_store=source.names)
        return parts
