"""What docs/service.md shows, done."""

import re
from pathlib import Path

import pytest

from tests.service.servers import TOKEN, Client

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "service.md").read_text()


def test_the_client_of_the_page(server: Client, free: list[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 1
    assert len([line for line in blocks[0].splitlines() if line.strip()]) <= 22
    names: dict[str, type] = {}
    exec(blocks[0], names)
    client = names["Client"](f"http://127.0.0.1:{server.port}", TOKEN)
    assert client.teach("new", free[:2])["version"] == 2
    assert client.ask("GET", f"/v1/nodes/{free[0]}")["label"] == "new"
    with pytest.raises(RuntimeError, match="is not in the graph"):
        client.teach("new", ["nobody"])


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
