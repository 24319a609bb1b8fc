"""Send requests over HTTP and repeat them if no answer comes. Idempotency keys prevent that a change is made twice."""

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
PAUSE, LONGEST_PAUSE = 0.2, 10.0  # seconds before the first retry, and the maximum before any retry


class ServiceError(GraphfclError):
    """The service refused a request.

    Attributes:
        status: HTTP status.
        kind: Kind of the problem, such as ``unknown-node``; ``graphfcl.client.problems.KINDS`` lists all. Empty if the
            answer is not a problem of graphfcl.
        version: Version of the model, if the answer names it.
    """

    def __init__(self, status: int, detail: str, kind: str = "", version: int | None = None) -> None:
        super().__init__(detail)
        self.status, self.kind, self.version = status, kind, version

    def __reduce__(self) -> tuple[type["ServiceError"], tuple[object, ...]]:
        """Pickle the constructor's arguments, so that another process can raise the error again."""
        return type(self), (self.status, str(self), self.kind, self.version)


class NoAnswerError(GraphfclError):
    """The service did not answer. A change may have been made; repeat it with the same key to make it only once."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: a service never sends one, and the token must not reach another server."""

    def redirect_request(self, *_: Any) -> None:
        return None


@dataclass
class Transport:
    """Sends requests to one service.

    Attributes:
        url: Address of the service.
        token: Token that the service requires.
        timeout: Seconds to wait for an answer.
        retries: Number of further attempts if no answer comes or the status is 502, 503 or 504.
    """

    url: str
    token: str | None = field(default=None, repr=False)
    timeout: float = 120.0
    retries: int = 3

    def __post_init__(self) -> None:
        address = urlsplit(self.url)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise InputError(
                f"{quoted(self.url)} is not the address of a service: give an address such as http://127.0.0.1:8765."
            )
        if address.fragment:
            raise InputError(
                "the address has a part after #: pass that part as token=, and leave it out of the address."
            )
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
        """Send a request and read its answer.

        Args:
            kind: Dataclass of the answer.
            method: HTTP method.
            path: Path of the request.
            body: Body as a JSON value.
            query: Query parameters; those that are None are left out.
            headers: Further headers.

        Returns:
            The answer.

        Raises:
            ServiceError: If the service refuses the request.
            NoAnswerError: If no answer comes after all attempts.
            UnreadableError: If the answer does not have the expected type.
        """
        parameters = {name: value for name, value in (query or {}).items() if value is not None}
        address = f"{self.url}{path}{'?' if parameters else ''}{urlencode(parameters)}"
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
        """Send a change with an idempotency key and read its answer, as :meth:`send` does.

        Args:
            kind: Dataclass of the answer.
            method: HTTP method.
            path: Path of the request.
            body: Body as a JSON value.
            if_version: Make the change only if the model has this version.
            key: Idempotency key; by default a new one.

        Returns:
            The answer.
        """
        headers = {"Idempotency-Key": key or uuid.uuid4().hex}
        if if_version is not None:
            headers["If-Match"] = f'"{if_version}"'
        return self.send(kind, method, path, body, headers=headers)

    def _answer(self, request: urllib.request.Request) -> Any:
        """Return the JSON of an answer. The request is repeated if no answer comes or the service is unavailable."""
        for attempt in range(self.retries + 1):
            pause = min(PAUSE * 2**attempt, LONGEST_PAUSE)
            try:
                with self._opener.open(request, timeout=self.timeout) as answer:
                    return _json_of(answer.read())
            except urllib.error.HTTPError as error:
                with error:
                    problem = _problem(error)
                wait = error.headers.get("Retry-After", "")
                if error.code not in RETRIED or attempt == self.retries:
                    raise problem from None
                pause = min(float(wait), LONGEST_PAUSE) if wait.isdigit() else pause
            except (OSError, http.client.HTTPException) as error:
                if attempt == self.retries:
                    why = getattr(error, "reason", None) or str(error) or type(error).__name__
                    raise NoAnswerError(
                        f"{self.url} does not answer ({why}): check that `graphfcl serve` is running."
                    ) from None
            time.sleep(pause)
        raise AssertionError


def address(*steps: str | int) -> str:
    """Join steps to a path of the API and percent-encode each of them."""
    return "/v1/" + "/".join(quote(str(step), safe="") for step in steps)


def _json_of(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        raise UnreadableError("the answer is not JSON: check that this is the address of a graphfcl service.") from None


def _kind(type_of_problem: str) -> str:
    return type_of_problem.removeprefix(PREFIX) if type_of_problem.startswith(PREFIX) else ""


def _problem(error: urllib.error.HTTPError) -> ServiceError:
    try:
        values = json.loads(error.read())
        return ServiceError(error.code, str(values["detail"]), _kind(str(values["type"])), values.get("version"))
    except (ValueError, LookupError, TypeError, AttributeError, OSError, http.client.HTTPException):
        return ServiceError(error.code, f"the service answered with the status {error.code} {error.reason}.")
