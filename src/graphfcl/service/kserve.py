"""The Open Inference Protocol (KServe, version 2): node ids in, classes out."""

from typing import Any

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

import graphfcl.client.answers as answers
from graphfcl.errors import quoted
from graphfcl.service.bodies import Id
from graphfcl.service.cards import prediction_columns
from graphfcl.service.problems import Problem
from graphfcl.service.service import Service, answered, refuse_many, require_rows, sent_text

INPUT = {"name": "ids", "datatype": "BYTES", "shape": [-1]}
OUTPUTS = {"classes": "BYTES", "probabilities": "FP64", "unknown": "BOOL", "unknown_score": "FP64"}


class Tensor(BaseModel):
    """An input tensor. Further fields of the protocol are ignored.

    Attributes:
        name: Name of the tensor: ``ids``.
        datatype: Type of the values: ``BYTES``.
        shape: Length of the only axis.
        data: Ids of the nodes.
    """

    name: str = Field(max_length=100)
    datatype: str = Field(max_length=20)
    shape: list[int] = Field(max_length=8)
    data: list[Id] = Field(min_length=1)


class Inference(BaseModel):
    """A request for predictions.

    Attributes:
        id: Id of the request, which the answer repeats.
        inputs: Input tensors; one of them is ``ids``.
    """

    id: str | None = Field(None, max_length=200)
    inputs: list[Tensor] = Field(min_length=1, max_length=8)


def kserve_routes(service: Service, model_name: str) -> APIRouter:
    """Make the routes of the protocol. ``model_name`` is the name of the model in addresses."""
    routes = APIRouter(prefix="/v2", tags=["kserve"])

    def check(name: str) -> None:
        if sent_text(name) != model_name:
            raise Problem(404, f"there is no model {quoted(sent_text(name))}: this service has {quoted(model_name)}.")

    @routes.get("/models/{name}/ready", response_model=answers.Ready)
    async def get_model_readiness(name: str) -> Response:
        """Say whether the model is ready: whether all files of the version are complete."""
        check(name)
        return service.ready({"ready": True})

    @routes.get("/models/{name}", response_model=answers.ModelDescription)
    async def describe_model(name: str) -> Response:
        """Describe the inputs and outputs of the model. Its name is the name of its folder."""
        check(name)
        version = service.writer.current.version
        outputs = [{"name": output, "datatype": kind, "shape": [-1]} for output, kind in OUTPUTS.items()]
        facts = {"name": model_name, "versions": [str(version)], "platform": "graphfcl", "inputs": [INPUT]}
        return answered({**facts, "outputs": outputs}, version)

    @routes.post("/models/{name}/infer", response_model=answers.InferenceAnswer)
    def infer(name: str, body: Inference) -> Response:
        """Predict the classes of many nodes.

        The input ``ids`` has the type ``BYTES``. The outputs are ``classes``, ``probabilities``, ``unknown`` and
        ``unknown_score``.
        """
        check(name)
        ids = next((tensor for tensor in body.inputs if tensor.name == INPUT["name"]), None)
        if ids is None or ids.datatype != INPUT["datatype"] or ids.shape != [len(ids.data)]:
            raise Problem(422, "there must be an input 'ids' of datatype BYTES, with one axis as long as its data.")
        refuse_many(len(ids.data), service.limits.ids, "ids")
        snapshot = service.writer.current
        require_rows(snapshot, ids.data)
        columns: dict[str, list[Any]] = prediction_columns(snapshot, ids.data)
        columns["classes"] = list(map(str, columns["classes"]))  # of datatype BYTES, integer classes too
        outputs = [
            {"name": output, "datatype": kind, "shape": [len(columns[output])], "data": columns[output]}
            for output, kind in OUTPUTS.items()
        ]
        answer = {"model_name": model_name, "model_version": str(snapshot.version), "outputs": outputs}
        return answered(answer | ({} if body.id is None else {"id": body.id}), snapshot.version)

    return routes
