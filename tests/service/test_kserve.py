"""The protocol of KServe, version 2."""

from pathlib import Path

import numpy as np

from graphfcl import GraphClassifier
from tests.service.servers import Client


def test_infer(shared: Client, fitted_folder: Path) -> None:
    anonymous = Client(shared.port, token=None)
    assert anonymous.get("/v2/health/live").json["live"] is True
    assert anonymous.get("/v2/health/ready").json["ready"] is True
    assert anonymous.get("/v2/models/model").json["inputs"] == [{"name": "ids", "datatype": "BYTES", "shape": [-1]}]
    ids = ["n20", "a/b"]
    body = {"id": "7", "inputs": [{"name": "ids", "datatype": "BYTES", "shape": [2], "data": ids, "parameters": {}}]}
    answer = anonymous.send("POST", "/v2/models/model/infer", body).json
    assert (answer["model_name"], answer["model_version"], answer["id"]) == ("model", "1", "7")
    outputs = {each["name"]: each for each in answer["outputs"]}
    expected = GraphClassifier.load(fitted_folder).prediction_columns(ids)
    assert outputs["classes"] == {
        "name": "classes",
        "datatype": "BYTES",
        "shape": [2],
        "data": expected["class"].tolist(),
    }
    np.testing.assert_allclose(outputs["probabilities"]["data"], expected["probability"])


def test_what_it_refuses(shared: Client) -> None:
    def status_of(path: str = "/v2/models/model/infer", **changes: object) -> int:
        tensor = {"name": "ids", "datatype": "BYTES", "shape": [1], "data": ["n20"], **changes}
        return shared.send("POST", path, {"inputs": [tensor]}).status

    assert status_of() == 200
    assert status_of("/v2/models/other/infer") == 404
    assert status_of(name="x") == 422
    assert status_of(shape=[2]) == 422
    assert status_of(datatype="FP32") == 422
    assert status_of(data=["nobody"]) == 404
    assert status_of(shape=[1001], data=["n20"] * 1001) == 413
