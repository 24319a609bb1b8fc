"""The description of the service in ``/openapi.json``."""

import re

from tests.service.servers import Client


def test_errors_and_the_token_are_described(shared: Client) -> None:
    description = shared.get("/openapi.json").json
    assert "HTTPValidationError" not in str(description)
    schemas = description["components"]["schemas"]
    assert schemas["Problem"]["required"] == ["type", "title", "status", "detail"]
    assert set(re.findall(r"#/components/schemas/(\w+)", str(description))) <= schemas.keys()
    assert description["components"]["securitySchemes"] == {"token": {"type": "http", "scheme": "bearer"}}
    for path, methods in description["paths"].items():
        for method, route in methods.items():
            assert list(route["responses"]["422"]["content"]) == ["application/problem+json"], path
            asks = method == "get" or path.endswith(("/predictions", "/spread", "/infer"))
            assert ("security" in route) != asks, (method, path)
