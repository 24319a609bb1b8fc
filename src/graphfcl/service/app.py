"""The ASGI app: API routes, web page, health checks, metrics and OpenAPI description."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import Depends, FastAPI, Response
from fastapi.responses import PlainTextResponse
from fastapi.security import HTTPBearer
from starlette.middleware import Middleware

import graphfcl.client.answers as answers
from graphfcl.errors import InputError
from graphfcl.production.graph.place import FolderUse
from graphfcl.service.background import Background
from graphfcl.service.descriptions import describe
from graphfcl.service.effect_routes import effect_routes
from graphfcl.service.exports import export_routes
from graphfcl.service.kserve import kserve_routes
from graphfcl.service.label_studio import label_studio_routes
from graphfcl.service.leases import lease_routes
from graphfcl.service.map_routes import map_routes
from graphfcl.service.members import accept_routes, member_routes
from graphfcl.service.metrics import TYPE, Metrics
from graphfcl.service.parameters import refuse_unknown_parameters
from graphfcl.service.problems import Problem, answer_with_problems
from graphfcl.service.reads import read_routes
from graphfcl.service.representation import Representation, tag_of
from graphfcl.service.review import keep_routes, review_routes
from graphfcl.service.security import LOOPBACK, Guard, Limits, Rules
from graphfcl.service.service import Service, answered
from graphfcl.service.writer import Writer
from graphfcl.service.writes import write_routes
from graphfcl.version import __version__

# Only declares the token in the OpenAPI description; the guard checks it.
TOKEN = Depends(HTTPBearer(scheme_name="token", auto_error=False))
READING = (read_routes, effect_routes, member_routes, review_routes, map_routes, export_routes, label_studio_routes)
CHANGING = (write_routes, accept_routes, keep_routes, lease_routes)
STATIC = Path(__file__).parent / "static"
MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}

CONTENT = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    "4XX": {"description": "The request was refused; nothing was changed.", "content": CONTENT},
    "5XX": {"description": "The service cannot do this at the moment.", "content": CONTENT},
    422: {"description": "The request is not valid.", "content": CONTENT},
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
    """Make the ASGI app that serves a model folder. The newest version is loaded at once.

    Args:
        folder: Model folder.
        token: Token that every change requires; None if changes need no token.
        hosts: Accepted host names.
        any_address: Whether numeric IP addresses are accepted as host names too.
        token_for_reads: Whether reading requires the token too.
        limits: Limits of requests.
        device: Device on which a learner computes.
        use: Place and resources of the graph folder, for a model on a graph folder.

    Returns:
        The app.

    Raises:
        InputError: If the folder holds no model.
    """
    limits, metrics = limits or Limits(), Metrics()
    rules = Rules(token, token_for_reads, frozenset(name.lower() for name in hosts), any_address)
    writer = Writer(Path(folder), metrics, limits, device=device, use=use)
    if not writer.versions.exists():
        raise InputError(f"{folder} holds no model: make one with `graphfcl fit --model {folder}`.")
    writer.start()
    service = Service(writer, Background(writer), metrics, limits, rules)
    app = _empty_app(service)
    answer_with_problems(app)
    reading, strict = [TOKEN] if token_for_reads else [], Depends(refuse_unknown_parameters)
    for routes in READING:
        app.include_router(routes(service), dependencies=[*reading, strict])
    for routes in CHANGING:
        app.include_router(routes(service), dependencies=[TOKEN, strict])
    app.include_router(kserve_routes(service, Path(folder).resolve().name), dependencies=[*reading, strict])
    _health_routes(app, service, reading)
    _page_routes(app)
    describe(app)
    return app


def _empty_app(service: Service) -> FastAPI:
    """Make an app without routes, behind the guard."""

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        service.background.start()
        yield
        service.close()

    guard = Middleware(Guard, rules=service.rules, limits=service.limits, metrics=service.metrics)
    return FastAPI(
        title="graphfcl",
        version=__version__,
        description="A classifier on a growing graph.",
        docs_url=None,  # the page would load scripts from another site
        redoc_url=None,
        redirect_slashes=False,
        lifespan=life,
        generate_unique_id_function=lambda route: route.name,  # function names are operation ids
        responses=PROBLEMS,
        middleware=[guard, Middleware(Representation)],
    )


def _health_routes(app: FastAPI, service: Service, reading: list[Any]) -> None:
    @app.get("/healthz", tags=["health"], response_model=answers.Health)
    async def get_health() -> Response:
        """Say whether the process answers."""
        return answered({"status": "ok"}, service.writer.current.version)

    @app.get("/readyz", tags=["health"], response_model=answers.Health)
    async def get_readiness() -> Response:
        """Say whether all files of the version are complete. If not, reads continue from the last complete version."""
        return service.ready({"status": "ready"})

    @app.get("/v2/health/live", tags=["kserve"], response_model=answers.Live)
    async def get_server_liveness() -> Response:
        """Say whether the process answers."""
        return answered({"live": True}, service.writer.current.version)

    @app.get("/v2/health/ready", tags=["kserve"], response_model=answers.Ready)
    async def get_server_readiness() -> Response:
        """Say whether all files of the version are complete."""
        return service.ready({"ready": True})

    @app.get("/metrics", tags=["health"], dependencies=reading, response_class=PlainTextResponse)
    async def get_metrics() -> Response:
        """Return metrics in the text format of Prometheus."""
        snapshot = service.writer.current
        gauges = {
            "model_version": snapshot.version,
            "model_nodes": snapshot.graph.node_count,
            "model_classes": len(snapshot.classes),
            "ready": int(service.writer.trouble is None),
            "waiting_changes": service.waiting,
        }
        return Response(service.metrics.text(gauges), media_type=TYPE)


def _page_routes(app: FastAPI) -> None:
    """Add the web page and its files. They are read once at the start, so no address can name another file."""
    files = {path.relative_to(STATIC).as_posix(): path for path in STATIC.rglob("*") if path.suffix in MEDIA_TYPES}
    contents = {name: (path.read_bytes(), MEDIA_TYPES[path.suffix]) for name, path in files.items()}
    tags = {name: f'"{tag_of(content)}"' for name, (content, _) in contents.items()}

    def send_file(name: str) -> Response:
        if name not in contents:
            raise Problem(404, "there is nothing at this address.")
        content, kind = contents[name]
        return Response(content, media_type=kind, headers={"Cache-Control": "no-cache", "ETag": tags[name]})

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return send_file("index.html")

    @app.get("/static/{name:path}", include_in_schema=False)
    async def static(name: str) -> Response:
        return send_file(name)
