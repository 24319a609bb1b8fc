"""JSON bodies of requests: their fields, and which values are refused."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr, ValidationError, model_validator

from graphfcl.errors import did_you_mean, quoted, shown
from graphfcl.graph.ids import CLASS_NAME, NODE_ID
from graphfcl.service.problems import Problem, UnknownFieldError

Whole = Annotated[StrictInt, Field(ge=-(2**63), lt=2**63)]
Id = Annotated[StrictStr, Field(max_length=NODE_ID.longest)] | Whole
ClassName = Annotated[StrictStr, Field(min_length=1, max_length=CLASS_NAME.longest)] | Whole
NewClasses = StrictBool | list[ClassName]
By = Annotated[StrictStr, Field(max_length=200)]
Remark = Annotated[StrictStr, Field(max_length=1_000)]
OnConflict = Literal["refuse", "keep", "replace"]
OnUnknown = Literal["refuse", "skip"]
OnExisting = Literal["refuse", "skip", "update"]
LARGEST = 1e15  # squares of larger numbers overflow 32-bit floats
Finite = Annotated[float, Field(allow_inf_nan=False, ge=-LARGEST, le=LARGEST)]


class Body(BaseModel):
    """The JSON body of a request; unknown fields are refused. Integers are accepted as ids and class names too."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def refuse_unknown_fields(cls, values: Any) -> Any:
        """Refuse unknown fields and suggest the most similar one, which pydantic does not do."""
        if isinstance(values, dict):
            known = [field.alias or name for name, field in cls.model_fields.items()]
            for name in values.keys() - set(known):
                raise UnknownFieldError(f"there is no field {quoted(name)}: {did_you_mean(name, known)}")
        return values


class Ids(Body):
    """Some nodes."""

    ids: list[Id] = Field(min_length=1)


class Batch(Ids):
    """Some nodes. on_unknown: ``refuse`` the request if a node is not in the graph, or ``skip`` such nodes."""

    on_unknown: OnUnknown = "refuse"


class Label(Body):
    """A node and its class. reason: why the node was suggested. note: a comment. Both are stored with the label."""

    id: Id
    name: ClassName = Field(alias="class")
    reason: Remark = ""
    note: Remark = ""


class Teaching(Body):
    """How to learn. again: teach a retired, renamed or merged class as a new class of its own.

    new_classes: true: any class may be new whose name does not look like a known one. A list: only the classes in it,
    whatever they look like. false: none. on_unknown: ``refuse`` all if a node is not in the graph, or ``skip`` it.
    """

    by: By = ""
    on_conflict: OnConflict = "refuse"
    on_unknown: OnUnknown = "refuse"
    again: bool = False
    new_classes: NewClasses = True


class Labels(Teaching):
    """Labels to learn."""

    labels: list[Label] = Field(min_length=1)


def label_of(node: Any, name: Any, place: str) -> Label:
    """Make a label from values of another format. place: where they were, for error messages."""
    try:
        return Label.model_validate({"id": node, "class": name})
    except ValidationError as error:
        raise Problem(422, f"{place} is {shown(node)}, with the class {shown(name)}: give the id of a node.") from error


class NewName(Body):
    """The new name of a class."""

    name: ClassName


class Into(Body):
    """The class to merge into."""

    into: ClassName


class GroupName(Body):
    """The class name for a group. version, count: of the list that contains the group. new_classes: as of labels.

    nodes: the members to teach, all of them; by default as many typical ones as the model has shots.
    """

    name: ClassName
    nodes: list[Id] | None = Field(None, min_length=1)
    by: By = ""
    version: StrictInt
    count: int = Field(5, ge=1, le=20)
    again: bool = False
    new_classes: NewClasses = True


class NewNodes(Body):
    """New nodes. features: for each a row of numbers or ``{name: value}``; or texts instead.

    on_existing: if a node is there with other features, ``refuse`` all, ``skip`` it or ``update`` it.
    """

    ids: list[Id] = Field(min_length=1)
    features: list[dict[str, Finite] | list[Finite]] | None = None
    texts: list[StrictStr] | None = None
    on_existing: OnExisting = "refuse"


class NewEdges(Body):
    """New edges, by the ids of their ends. on_existing: the same for edges with another weight."""

    sources: list[Id] = Field(min_length=1)
    targets: list[Id] = Field(min_length=1)
    weights: list[Finite] | None = None
    on_existing: OnExisting = "refuse"
