"""Errors as ``application/problem+json`` (RFC 9457): what is wrong, and what to do."""

import json
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from graphfcl.errors import GraphfclError, InputError, printable
from graphfcl.production.model.versions import Busy

TITLES = {
    400: "The request cannot be read",
    401: "A token is needed",
    403: "The request comes from another site",
    404: "There is no such thing",
    405: "This cannot be done here",
    408: "The request took too long to arrive",
    409: "The model is in another state",
    412: "The model has moved on",
    413: "The request is too large",
    415: "The body is no JSON",
    421: "The service is not known by this name",
    422: "The request cannot be used",
    500: "Something went wrong",
    501: "The model cannot do this",
    503: "The model cannot be changed or read at the moment",
}
SHOWN = 300  # characters of a value that a sentence repeats


class Problem(Exception):
    """An answer that says what is wrong. detail: one sentence. more: further fields. headers: of the answer."""

    def __init__(self, status: int, detail: str, *, headers: dict[str, str] | None = None, **more: Any) -> None:
        super().__init__(detail)
        self.status, self.detail, self.more, self.headers = status, detail, more, headers or {}

    def as_json(self) -> dict[str, Any]:
        title = TITLES.get(self.status, "The request was refused")
        return {
            "type": "about:blank",
            "title": title,
            "status": self.status,
            "detail": printable(self.detail),
        } | self.more

    def response(self) -> Response:
        return Response(
            json.dumps(self.as_json(), ensure_ascii=True).encode(),
            status_code=self.status,
            headers=self.headers,
            media_type="application/problem+json",
        )


def shown(value: Any) -> str:
    """A value that somebody sent, as a sentence may repeat it."""
    text = str(value)
    return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}…")


def problem_of(error: Exception) -> Problem:
    """What an error of the library becomes."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, Busy):
        return Problem(503, str(error), headers={"Retry-After": "5"})
    if isinstance(error, InputError):
        return Problem(422, str(error))
    if isinstance(error, GraphfclError):
        return Problem(500, f"{error} The model is unchanged.")
    return Problem(500, "an error that was not foreseen; the model is unchanged. The log of the service has more.")


def answer_with_problems(app: FastAPI) -> None:
    """Let every error of an app be a problem."""

    def known(_: Request, error: Exception) -> Response:
        return problem_of(error).response()

    def invalid(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return _invalid(error).response()

    def plain(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        details = {404: "there is nothing at this address: /openapi.json lists what there is."}
        details[400] = "the body cannot be read: nest it less deeply, and send no number of thousands of digits."
        details[405] = "this address does not take this method: /openapi.json lists what there is."
        return Problem(
            error.status_code, details.get(error.status_code, str(error.detail)), headers=dict(error.headers or {})
        ).response()

    for kind in (Problem, GraphfclError):
        app.add_exception_handler(kind, known)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, plain)


def _invalid(error: RequestValidationError) -> Problem:
    """The first thing that is wrong with a body or a query, in one sentence."""
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return Problem(400, "the body is no JSON: send UTF-8 JSON without NaN or Infinity.")
    place = ".".join(str(part) for part in first["loc"] if part != "body")
    return Problem(422, f"{place or 'the body'}: {first['msg']}.")
