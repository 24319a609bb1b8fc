"""Access control: host names, token, requests from other sites, and sizes of requests.

It is one ASGI middleware around the whole app, so that it applies to every route.
"""

import hmac
import ipaddress
import re
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graphfcl.service.metrics import Metrics
from graphfcl.service.problems import Problem, problem_of

LOOPBACK = ("127.0.0.1", "localhost", "::1")
SAFE = ("GET", "HEAD", "OPTIONS")
METHODS = (*SAFE, "POST", "PUT", "PATCH", "DELETE")
# Addresses that never need a token: they reveal nothing about the graph.
OPEN = ("/", "/healthz", "/readyz", "/v2/health/live", "/v2/health/ready")
OPEN_FOLDER = "/static/"
ANSWERS = ("/v1/", "/v2/")  # API requests; an answer may take long to compute
HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[\w.-]+)(:[0-9]{1,5})?", re.ASCII)
# These POST routes only read; they use POST because the body may be long.
READING_POSTS = re.compile(r"/v1/predictions|/v1/spread|/v2/models/[^/]+/infer")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


@dataclass(frozen=True)
class Limits:
    """Limits of requests.

    Attributes:
        body: Bytes of a body.
        ids: Nodes of one prediction.
        labels: Labels, nodes or edges of one change.
        nodes: Nodes of one page or neighbourhood.
        suggestions: Suggestions of one list.
        groups: Groups of one list.
        versions: Versions of one page.
        keys: Number of idempotency keys to remember; the oldest are forgotten.
        waiting: Changes that may wait for the running change.
        lock: Seconds to wait for another process that writes.
    """

    body: int = 1 << 20
    ids: int = 1_000
    labels: int = 1_000
    nodes: int = 150
    suggestions: int = 200
    groups: int = 20
    versions: int = 200
    keys: int = 100_000
    waiting: int = 16
    lock: float = 30.0


@dataclass(frozen=True)
class Rules:
    """Who may use the service.

    Attributes:
        token: Token that changes require; None if they need none.
        reads: Whether reading requires the token too.
        hosts: Accepted host names, in lower case.
        any_address: Whether numeric addresses are accepted too. A page of another site cannot make a browser send
            them, since DNS rebinding needs a name.
    """

    token: str | None = None
    reads: bool = False
    hosts: frozenset[str] = field(default_factory=lambda: frozenset(LOOPBACK))
    any_address: bool = False


class Guard:
    """Refuses forbidden requests, counts all of them, and adds security headers for browsers."""

    def __init__(self, app: ASGIApp, rules: Rules, limits: Limits, metrics: Metrics) -> None:
        self._app, self._rules, self._limits, self._metrics = app, rules, limits, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            else:
                await self._app(scope, receive, send)
            return
        start, status, begun = time.perf_counter(), 500, False

        async def answer(message: Message) -> None:
            nonlocal status, begun
            if message["type"] == "http.response.start":
                status, begun = message["status"], True
                message = {**message, "headers": [*message.get("headers", ()), *HEADERS]}
            await send(message)

        # Routes are found by the address as it was sent: a slash in an id is "%2F" and separates nothing.
        scope["path"] = scope.get("raw_path", scope["path"].encode()).decode("ascii", "replace").partition("?")[0]
        try:
            self._check(scope)
            await self._app(scope, await self._with_body(scope, receive), answer)
        except Exception as error:
            if begun:
                raise
            problem = problem_of(error)
            await problem.response()(scope, receive, answer)
            if problem.status == 500:
                raise
        finally:
            route = getattr(scope.get("route"), "path", "other")
            method = scope["method"] if scope["method"] in METHODS else "OTHER"
            self._metrics.request(method, route, status, time.perf_counter() - start)

    # What is refused

    def _check(self, scope: Scope) -> None:
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        host = self._host(headers)
        if "transfer-encoding" in headers and "content-length" in headers:  # a proxy may use the other one
            raise Problem(
                400,
                "the request has both Content-Length and Transfer-Encoding: send one of them.",
                headers={"Connection": "close"},
            )
        changes = scope["method"] not in SAFE and not READING_POSTS.fullmatch(scope["path"])
        if scope["method"] not in SAFE:
            self._refuse_other_sites(headers, host)
        path = scope["path"]
        is_open = path in OPEN or path.startswith(OPEN_FOLDER)
        if path.startswith(ANSWERS) and not is_open:
            _refuse_fetches_of_other_sites(headers)
        if self._rules.token is not None and (changes or (self._rules.reads and not is_open)):
            self._require_token(headers)

    def _host(self, headers: dict[str, list[str]]) -> str:
        """The Host header, whose name must be one of the service."""
        hosts = headers.get("host", [])
        if len(hosts) != 1:
            raise Problem(400, "the request must have one Host header.")
        match = HOST.fullmatch(hosts[0])
        name = match.group(1).strip("[]").lower() if match else ""
        if not (name in self._rules.hosts or (self._rules.any_address and is_address(name))):
            raise Problem(
                421,
                f"the service does not accept the host name {hosts[0][:100]!r}: if it should, start it with "
                "--allow-host and this name.",
            )
        return hosts[0].lower()

    def _refuse_other_sites(self, headers: dict[str, list[str]], host: str) -> None:
        """Refuse requests that a page of another site makes a browser send."""
        for origin in headers.get("origin", []):
            if _netloc(origin) != host:
                raise Problem(
                    403, f"the request comes from a page of {origin[:100]!r}: only the service's own page may ask."
                )
        _refuse_fetches_of_other_sites(headers)
        has_body = "transfer-encoding" in headers or headers.get("content-length", ["0"])[0].strip() != "0"
        kind = headers.get("content-type", [""])[0].partition(";")[0].strip().lower()
        if has_body and kind != "application/json":  # a form on another site cannot send this type
            raise Problem(415, "the body must be JSON: send it with Content-Type: application/json.")

    def _require_token(self, headers: dict[str, list[str]]) -> None:
        values = headers.get("authorization", [])
        kind, _, sent = values[0].partition(" ") if len(values) == 1 else ("", "", "")
        token = (self._rules.token or "").encode()
        if kind.lower() != "bearer" or not hmac.compare_digest(sent.strip().encode(), token):
            raise Problem(
                401,
                "the token is missing or wrong: send it as Authorization: Bearer TOKEN; `graphfcl serve` prints it or "
                "reads it from --token-file.",
                headers={"WWW-Authenticate": 'Bearer realm="graphfcl"'},
            )

    async def _with_body(self, scope: Scope, receive: Receive) -> Receive:
        """The request with its body read; a body over the limit is refused, whatever Content-Length says."""
        limit = self._limits.body
        too_large = Problem(413, f"the body is longer than {limit:,} bytes: send less at a time; nothing was changed.")
        for name, value in scope["headers"]:
            if name == b"content-length" and (not value.isdigit() or int(value) > limit):
                raise too_large
        parts, size, more = [], 0, True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                break  # the client has gone
            parts.append(message.get("body", b""))
            size, more = size + len(parts[-1]), message.get("more_body", False)
            if size > limit:
                raise too_large
        body: Message | None = {"type": "http.request", "body": b"".join(parts), "more_body": False}

        async def again() -> Message:
            nonlocal body
            if body is None:
                return await receive()
            message, body = body, None
            return message

        return again


def _refuse_fetches_of_other_sites(headers: dict[str, list[str]]) -> None:
    if headers.get("sec-fetch-site", ["none"])[0] not in ("none", "same-origin"):
        raise Problem(403, "the request comes from a page of another site: only the service's own page may ask.")


def _netloc(origin: str) -> str:
    """Name and port of an origin; "" if it has none."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def is_host_name(name: str) -> bool:
    """Whether this is a host name or an address alone, without scheme, port or path."""
    match = HOST.fullmatch(name)
    return (match is not None and match.group(2) is None and not name.startswith("[")) or is_address(name)


def is_address(name: str) -> bool:
    """Whether this is a numeric IP address."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
