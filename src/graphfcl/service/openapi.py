"""What ``/openapi.json`` says of errors and of the token."""

from typing import Any

from fastapi import FastAPI

from graphfcl.service.security import ASKING, OPEN, SAFE

SCHEMA: dict[str, Any] = {
    "title": "Problem",
    "description": "What is wrong, and what to do (RFC 9457).",
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "version": {"type": "integer"},
    },
}
CONTENT = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    "4XX": {"description": "The request was refused; nothing was changed.", "content": CONTENT},
    "5XX": {"description": "The service cannot do this at the moment.", "content": CONTENT},
    422: {"description": "The request cannot be used.", "content": CONTENT},
}


def describe(app: FastAPI, *, token_for_reads: bool) -> None:
    """Add the schema of problems and the token to what an app says of itself."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            found = plain()
            parts = found.setdefault("components", {})
            schemas = parts.setdefault("schemas", {})
            for name in ("HTTPValidationError", "ValidationError"):
                schemas.pop(name, None)
            schemas["Problem"] = SCHEMA
            parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            for path, methods in found["paths"].items():
                for method, route in methods.items():
                    if _needs_token(method.upper(), path, token_for_reads):
                        route["security"] = [{"token": []}]
        return app.openapi_schema or {}

    app.openapi = openapi  # type: ignore[method-assign]


def _needs_token(method: str, path: str, token_for_reads: bool) -> bool:
    changes = method not in SAFE and not ASKING.fullmatch(path)
    return changes or (token_for_reads and path not in OPEN)
