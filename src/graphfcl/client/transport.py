"""Requests over HTTP with retries: every change has an idempotency key, so that it is made once."""

import http.client
import json
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from graphfcl.client.problems import PREFIX
from graphfcl.client.reading import UnreadableError, read_as
from graphfcl.errors import GraphfclError, InputError, quoted
from graphfcl.version import __version__

Kind = TypeVar("Kind")
RETRIED = (502, 503, 504)
PAUSE, LONGEST_PAUSE = 0.2, 10.0  # seconds before the first repetition, and at most before any


class ServiceError(GraphfclError):
    """A request that the service refused. status: of HTTP. kind: such as ``unknown-node``, see ``problems.KINDS``.

    version: of the model.
    """

    def __init__(self, status: int, detail: str, kind: str = "", version: int | None = None) -> None:
        super().__init__(detail)
        self.status, self.kind, self.version = status, kind, version

    def __reduce__(self) -> tuple[type["ServiceError"], tuple[object, ...]]:
        """Pickle by the arguments, so that another process can raise it."""
        return type(self), (self.status, str(self), self.kind, self.version)


class NoAnswerError(GraphfclError):
    """The service did not answer. A change may have been made: repeating it with the same key makes it once."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: a service never sends one, and the token must not go elsewhere."""

    def redirect_request(self, *_: Any) -> None:
        return None


@dataclass
class Transport:
    """Sends requests to one service. timeout: seconds to wait for an answer. retries: of unanswered requests."""

    url: str
    token: str | None = field(default=None, repr=False)
    timeout: float = 120.0
    retries: int = 3

    def __post_init__(self) -> None:
        address = urlsplit(self.url)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise InputError(f"{quoted(self.url)} is no address of a service: give one such as http://127.0.0.1:8765.")
        if address.fragment:
            raise InputError("the address has a part after #: give that token as token=, and the address without it.")
        self.url = self.url.rstrip("/")
        self._opener = urllib.request.build_opener(_NoRedirects)

    def send(
        self,
        kind: type[Kind],
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Kind:
        """The answer to a request, as a dataclass."""
        given = {name: value for name, value in (query or {}).items() if value is not None}
        address = f"{self.url}{path}{'?' if given else ''}{urlencode(given)}"
        sent = {"Accept": "application/json", "User-Agent": f"graphfcl/{__version__}", **(headers or {})}
        if self.token is not None:
            sent["Authorization"] = f"Bearer {self.token}"
        content = None
        if body is not None:
            content, sent["Content-Type"] = json.dumps(body).encode(), "application/json"
        request = urllib.request.Request(address, content, sent, method=method)
        return read_as(kind, self._answer(request))

    def change(
        self,
        kind: type[Kind],
        method: str,
        path: str,
        body: Any = None,
        *,
        if_version: int | None = None,
        key: str | None = None,
    ) -> Kind:
        """As :meth:`send`, for a change. if_version: only at this version. key: by default a new one."""
        headers = {"Idempotency-Key": key or uuid.uuid4().hex}
        if if_version is not None:
            headers["If-Match"] = f'"{if_version}"'
        return self.send(kind, method, path, body, headers=headers)

    def _answer(self, request: urllib.request.Request) -> Any:
        """The JSON of an answer; a request is sent again if no answer comes or the service is busy."""
        for tried in range(self.retries + 1):
            pause = min(PAUSE * 2**tried, LONGEST_PAUSE)
            try:
                with self._opener.open(request, timeout=self.timeout) as answer:
                    return _json_of(answer.read())
            except urllib.error.HTTPError as error:
                with error:
                    problem = _problem(error)
                wait = error.headers.get("Retry-After", "")
                if error.code not in RETRIED or tried == self.retries:
                    raise problem from None
                pause = min(float(wait), LONGEST_PAUSE) if wait.isdigit() else pause
            except (OSError, http.client.HTTPException) as error:
                if tried == self.retries:
                    why = getattr(error, "reason", None) or str(error) or type(error).__name__
                    raise NoAnswerError(
                        f"{self.url} does not answer ({why}): see whether `graphfcl serve` runs."
                    ) from None
            time.sleep(pause)
        raise AssertionError


def address(*steps: str | int) -> str:
    """A path of the API; a step may contain any character."""
    return "/v1/" + "/".join(quote(str(step), safe="") for step in steps)


def _json_of(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        raise UnreadableError("the answer is no JSON: see whether this is the address of a graphfcl service.") from None


def _kind(type_of_problem: str) -> str:
    return type_of_problem.removeprefix(PREFIX) if type_of_problem.startswith(PREFIX) else ""


def _problem(error: urllib.error.HTTPError) -> ServiceError:
    try:
        values = json.loads(error.read())
        return ServiceError(error.code, str(values["detail"]), _kind(str(values["type"])), values.get("version"))
    except (ValueError, LookupError, TypeError, AttributeError, OSError, http.client.HTTPException):
        return ServiceError(error.code, f"the service answered with the status {error.code} {error.reason}.")
