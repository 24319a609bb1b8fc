"""JSON bodies of requests."""

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
    """Some nodes.

    Attributes:
        ids: Ids of the nodes.
    """

    ids: list[Id] = Field(min_length=1)


class Batch(Ids):
    """Nodes to predict.

    Attributes:
        on_unknown: What to do if a node is not in the graph: ``refuse`` the request or ``skip`` the node.
    """

    on_unknown: OnUnknown = "refuse"


class Label(Body):
    """A node and its class.

    Attributes:
        id: Id of the node.
        name: Name of the class; ``class`` in JSON.
        reason: Why the node was suggested; stored with the label.
        note: Comment of the person; stored with the label.
    """

    id: Id
    name: ClassName = Field(alias="class")
    reason: Remark = ""
    note: Remark = ""


class Teaching(Body):
    """How labels are learned.

    Attributes:
        by: Name of the person who gives the labels.
        on_conflict: What to do if a node has another label: ``refuse`` the request, ``keep`` the old label or
            ``replace`` it.
        on_unknown: What to do if a node is not in the graph: ``refuse`` the request or ``skip`` its labels.
        again: Whether the name of a retired, renamed or merged class may start a new class.
        new_classes: Which classes may be new. ``true`` allows every name that does not look like the name of a known
            class, a list allows exactly its names, and ``false`` allows none.
    """

    by: By = ""
    on_conflict: OnConflict = "refuse"
    on_unknown: OnUnknown = "refuse"
    again: bool = False
    new_classes: NewClasses = True


class Labels(Teaching):
    """Labels to learn.

    Attributes:
        labels: Nodes and their classes.
    """

    labels: list[Label] = Field(min_length=1)


def label_of(node: Any, name: Any, place: str) -> Label:
    """Make a label from values of another format. ``place`` names their position in error messages."""
    try:
        return Label.model_validate({"id": node, "class": name})
    except ValidationError as error:
        raise Problem(422, f"{place} is {shown(node)}, with the class {shown(name)}: give the id of a node.") from error


class NewName(Body):
    """The new name of a class.

    Attributes:
        name: New name of the class.
    """

    name: ClassName


class Into(Body):
    """The class to merge into.

    Attributes:
        into: Name of the other class.
    """

    into: ClassName


class GroupName(Body):
    """The class name for a group.

    Attributes:
        name: Name of the class.
        nodes: Members to teach, all of which must be in the group; by default as many typical members as the model has
            shots.
        by: Name of the person who names the group.
        version: Version of the list of groups.
        count: Number of groups with which the list was requested.
        again: Whether the name of a retired, renamed or merged class may start a new class.
        new_classes: Which classes may be new, as for labels.
    """

    name: ClassName
    nodes: list[Id] | None = Field(None, min_length=1)
    by: By = ""
    version: StrictInt
    count: int = Field(5, ge=1, le=20)
    again: bool = False
    new_classes: NewClasses = True


class NewNodes(Body):
    """New nodes, with either features or texts.

    Attributes:
        ids: Ids of the nodes.
        features: Features of each node, as a row of numbers or as ``{name: value}``.
        texts: Text of each node, from which its features are computed.
        on_existing: What to do if a node exists with other features: ``refuse`` the request, ``skip`` the node or
            ``update`` it.
    """

    ids: list[Id] = Field(min_length=1)
    features: list[dict[str, Finite] | list[Finite]] | None = None
    texts: list[StrictStr] | None = None
    on_existing: OnExisting = "refuse"


class NewEdges(Body):
    """New edges between existing nodes.

    Attributes:
        sources: Id of the first end of each edge.
        targets: Id of the second end of each edge.
        weights: Weight of each edge; by default 1 for new edges.
        on_existing: What to do if an edge exists with another weight: ``refuse`` the request, ``skip`` the edge or
            ``update`` it.
    """

    sources: list[Id] = Field(min_length=1)
    targets: list[Id] = Field(min_length=1)
    weights: list[Finite] | None = None
    on_existing: OnExisting = "refuse"
