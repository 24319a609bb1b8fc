"""What docs/service.md shows, done."""

import re
from pathlib import Path

from tests.service.servers import Client

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "service.md").read_text()


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


def test_every_address_is_listed(shared: Client) -> None:
    for path, methods in shared.get("/openapi.json").json["paths"].items():
        plain = re.sub(r"\{node\}", "{id}", path)
        if path.startswith("/v2/"):
            assert re.sub(r"/ready$", "", plain) in PAGE or plain in PAGE
            continue
        for method in methods:
            names = [method.upper(), plain]
            rows = [line for line in PAGE.splitlines() if plain in line and (method.upper() in line)]
            assert rows, names
