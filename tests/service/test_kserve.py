"""The protocol of KServe, version 2."""

from pathlib import Path

import numpy as np

from graphfcl import GraphClassifier
from tests.service.servers import Client


def test_infer(shared: Client, fitted_folder: Path) -> None:
    stranger = Client(shared.port, token=None)
    assert stranger.get("/v2/health/live").json["live"] is True
    assert stranger.get("/v2/health/ready").json["ready"] is True
    assert stranger.get("/v2/models/model").json["inputs"] == [{"name": "ids", "datatype": "BYTES", "shape": [-1]}]
    ids = ["n20", "a/b"]
    body = {"id": "7", "inputs": [{"name": "ids", "datatype": "BYTES", "shape": [2], "data": ids, "parameters": {}}]}
    found = stranger.send("POST", "/v2/models/model/infer", body).json
    assert (found["model_name"], found["model_version"], found["id"]) == ("model", "1", "7")
    outputs = {each["name"]: each for each in found["outputs"]}
    expected = GraphClassifier.load(fitted_folder).prediction_columns(ids)
    assert outputs["classes"] == {
        "name": "classes",
        "datatype": "BYTES",
        "shape": [2],
        "data": expected["class"].tolist(),
    }
    np.testing.assert_allclose(outputs["probabilities"]["data"], expected["probability"])


def test_what_it_refuses(shared: Client) -> None:
    def asked(path: str = "/v2/models/model/infer", **changes: object) -> int:
        tensor = {"name": "ids", "datatype": "BYTES", "shape": [1], "data": ["n20"], **changes}
        return shared.send("POST", path, {"inputs": [tensor]}).status

    assert asked() == 200
    assert asked("/v2/models/other/infer") == 404
    assert asked(name="x") == 422
    assert asked(shape=[2]) == 422
    assert asked(datatype="FP32") == 422
    assert asked(data=["nobody"]) == 404
    assert asked(shape=[1001], data=["n20"] * 1001) == 413
