"""Errors as ``application/problem+json`` (RFC 9457): what is wrong, and what to do."""

import json
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from graphfcl.client.problems import KINDS, PREFIX
from graphfcl.errors import GraphfclError, InputError, printable, shown
from graphfcl.production.store.database import Busy

DETAILS = {
    400: "the body cannot be read: nest it less deeply, and send no number of thousands of digits.",
    404: "there is nothing at this address: /openapi.json lists what there is.",
    405: "this address does not take this method: /openapi.json lists what there is.",
}

KIND_OF_STATUS = {status: kind for kind, (status, _) in reversed(KINDS.items())}


class UnknownFieldError(ValueError):
    """A body has an unknown field."""


class Problem(Exception):
    """An error answer.

    Args:
        status: HTTP status.
        detail: What is wrong and what to do, in one sentence.
        kind: Kind of the problem in ``KINDS``; by default the first kind of the status.
        headers: Headers of the answer.
        **more: Further fields of the answer.
    """

    def __init__(
        self, status: int, detail: str, kind: str = "", *, headers: dict[str, str] | None = None, **more: Any
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.more, self.headers = status, detail, more, headers or {}
        self.kind = kind or KIND_OF_STATUS.get(status, "")

    def response(self) -> Response:
        kind, title = f"{PREFIX}{self.kind}", KINDS.get(self.kind, (0, ""))[1]
        if not title:
            kind, title = "about:blank", HTTPStatus(self.status).phrase  # RFC 9457 requires both together
        values = {"type": kind, "title": title, "status": self.status, "detail": printable(self.detail)}
        content = json.dumps(values | self.more, ensure_ascii=True).encode()
        return Response(content, self.status, self.headers, "application/problem+json")


def problem_of(error: Exception) -> Problem:
    """Return the problem that reports an error."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, Busy):
        return Problem(503, str(error), "busy", headers={"Retry-After": "5"})
    if isinstance(error, InputError):
        return Problem(422, str(error))
    if isinstance(error, GraphfclError):
        return Problem(500, f"{error} The model is unchanged.")
    if isinstance(error, RequestValidationError):
        return _invalid(error)
    if isinstance(error, HTTPException):
        detail = DETAILS.get(error.status_code, str(error.detail))
        return Problem(error.status_code, detail, headers=dict(error.headers or {}))
    return Problem(500, "an unexpected error; the model is unchanged. The log of the service has more.")


def _invalid(error: RequestValidationError) -> Problem:
    """Report the first fault of a body or a query in one sentence."""
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return Problem(400, "the body is not JSON: send UTF-8 JSON without NaN or Infinity.")
    place = ".".join(str(part) for part in first["loc"] if part != "body")
    if first["type"] == "literal_error":
        return Problem(422, f"{place} is {shown(first['input'])}: take {first['ctx']['expected']}.")
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, UnknownFieldError):
        return Problem(422, f"{place or 'the body'}: {cause}", "unknown-field")
    return Problem(422, f"{place or 'the body'}: {first['msg']}.")


def answer_with_problems(app: FastAPI) -> None:
    """Answer every error of an app with a problem."""
    for kind in (Problem, GraphfclError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, lambda _, error: problem_of(error).response())
