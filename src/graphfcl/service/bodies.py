"""What the bodies of requests look like. Whole numbers are taken as ids and classes too."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr

from graphfcl.graph.ids import CLASS_NAME, NODE_ID

Whole = Annotated[StrictInt, Field(ge=-(2**63), lt=2**63)]
Id = Annotated[StrictStr, Field(max_length=NODE_ID.longest)] | Whole
ClassName = Annotated[StrictStr, Field(min_length=1, max_length=CLASS_NAME.longest)] | Whole
By = Annotated[StrictStr, Field(max_length=200)]
LARGEST = 1e15  # sums and squares of so large numbers fit into 32 bits; those of larger ones become NaN
Finite = Annotated[float, Field(allow_inf_nan=False, ge=-LARGEST, le=LARGEST)]


class Body(BaseModel):
    """A field that is not known is a mistake."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class Ids(Body):
    """Some nodes."""

    ids: list[Id] = Field(min_length=1)


class Label(Body):
    """A node and its class."""

    id: Id
    name: ClassName = Field(alias="class")


class Labels(Body):
    """Labels to learn. again: teach a class that was retired, renamed or merged as a class of its own."""

    labels: list[Label] = Field(min_length=1)
    by: By = ""
    on_conflict: StrictStr = "refuse"
    again: bool = False


class NewName(Body):
    """What a class is to be called."""

    name: ClassName


class Into(Body):
    """The class that another becomes part of."""

    into: ClassName


class GroupName(Body):
    """What a group is to be called. version, count: of the list that it stood in."""

    name: ClassName
    by: By = ""
    version: StrictInt
    count: int = Field(5, ge=1, le=20)
    again: bool = False


class NewNodes(Body):
    """Nodes that join the graph. features: a row of numbers, or ``{name: value}``, for each; or texts."""

    ids: list[Id] = Field(min_length=1)
    features: list[dict[str, Finite] | list[Finite]] | None = None
    texts: list[StrictStr] | None = None


class NewEdges(Body):
    """Edges that join the graph, by the ids of their ends."""

    sources: list[Id] = Field(min_length=1)
    targets: list[Id] = Field(min_length=1)
    weights: list[Finite] | None = None


Plain = dict[str, Any]
