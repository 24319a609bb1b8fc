"""The ASGI app: routes, the page, health, metrics and the OpenAPI description, behind the guard."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Response
from starlette.middleware import Middleware

from graphfcl.errors import InputError
from graphfcl.production.graph.place import FolderUse
from graphfcl.service.background import Background
from graphfcl.service.kserve import kserve_routes
from graphfcl.service.metrics import TYPE, Metrics
from graphfcl.service.problems import Problem, answer_with_problems
from graphfcl.service.reads import read_routes
from graphfcl.service.security import ASKING, LOOPBACK, OPEN, SAFE, Guard, Limits, Rules
from graphfcl.service.service import Service, answered
from graphfcl.service.snapshots import Snapshots
from graphfcl.service.writer import Writer
from graphfcl.service.writes import write_routes
from graphfcl.version import __version__

STATIC = Path(__file__).parent / "static"
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".txt": "text/plain; charset=utf-8",
    ".json": "application/json",
}

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


def make_app(
    folder: str | Path,
    *,
    token: str | None = None,
    hosts: Iterable[str] = LOOPBACK,
    any_address: bool = False,
    token_for_reads: bool = False,
    limits: Limits | None = None,
    device: str = "cpu",
    use: FolderUse = FolderUse(),  # noqa: B008  # it is frozen
) -> FastAPI:
    """The service of a model folder, as an ASGI app; the newest version is loaded at once.

    token: required for every change, None if not. hosts: accepted host names; any_address: accept numeric addresses
    too. token_for_reads: reading requires the token too. use: for a model on a graph folder, its place and resources,
    if they changed.
    """
    limits, metrics, snapshots = limits or Limits(), Metrics(), Snapshots()
    rules = Rules(token, token_for_reads, frozenset(name.lower() for name in hosts), any_address)
    writer = Writer(Path(folder), snapshots, metrics, limits, device=device, use=use)
    if not writer.versions.exists():
        raise InputError(f"{folder} holds no model: make one with `graphfcl fit --model {folder}`.")
    writer.start()
    service = Service(snapshots, writer, Background(snapshots, writer), metrics, limits, rules)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        service.background.start()
        yield
        service.close()

    app = FastAPI(
        title="graphfcl",
        version=__version__,
        description="A classifier on a growing graph.",
        docs_url=None,  # its scripts would come from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        lifespan=life,
        responses=PROBLEMS,
        middleware=[Middleware(Guard, rules=rules, limits=limits, metrics=metrics)],
    )
    answer_with_problems(app)
    app.include_router(read_routes(service))
    app.include_router(write_routes(service))
    app.include_router(kserve_routes(service, Path(folder).resolve().name))
    _health_routes(app, service)
    _page_routes(app)
    _describe(app, token_for_reads=rules.reads)
    return app


def _health_routes(app: FastAPI, service: Service) -> None:
    @app.get("/healthz", tags=["health"])
    async def healthz() -> Response:
        """Whether the process answers."""
        return answered({"status": "ok"}, service.snapshots.current.version)

    @app.get("/readyz", tags=["health"])
    async def readyz() -> Response:
        """Whether the folder is whole; while it is not, reads go on from the last version that was."""
        snapshots = service.snapshots
        if snapshots.trouble is None:
            return answered({"status": "ready"}, snapshots.current.version)
        raise service.not_ready()

    @app.get("/metrics", tags=["health"])
    async def metrics() -> Response:
        """Metrics for Prometheus."""
        snapshot = service.snapshots.current
        gauges = {
            "model_version": snapshot.version,
            "model_nodes": snapshot.graph.node_count,
            "model_classes": len(snapshot.classes),
            "ready": int(service.snapshots.trouble is None),
            "waiting_changes": service.waiting,
        }
        text = service.metrics.text(gauges)
        return Response(text, media_type=TYPE)


def _page_routes(app: FastAPI) -> None:
    """The page and its files, read once: no address can name another file."""
    files = {path.relative_to(STATIC).as_posix(): path for path in STATIC.rglob("*") if path.suffix in KINDS}
    contents: dict[str, tuple[bytes, Any]] = {
        name: (path.read_bytes(), KINDS[path.suffix]) for name, path in files.items()
    }

    def sent(name: str) -> Response:
        if name not in contents:
            raise Problem(404, "there is nothing at this address.")
        content, kind = contents[name]
        return Response(content, media_type=kind, headers={"Cache-Control": "no-cache"})

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return sent("index.html")

    @app.get("/static/{name:path}", include_in_schema=False)
    async def static(name: str) -> Response:
        return sent(name)


def _describe(app: FastAPI, *, token_for_reads: bool) -> None:
    """Add the schema of problems and the token to ``/openapi.json``."""
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
