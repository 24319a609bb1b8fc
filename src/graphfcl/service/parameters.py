"""Refuse query parameters that an operation does not have, instead of ignoring them."""

from fastapi import Request
from fastapi.routing import APIRoute

from graphfcl.errors import did_you_mean, quoted
from graphfcl.service.problems import Problem


async def refuse_unknown_parameters(request: Request) -> None:
    """Route dependency: refuse unknown parameters, suggesting the most similar one, and repeated parameters."""
    sent = request.query_params.multi_items()
    if not sent:
        return
    route = request.scope["route"]
    known = [each.alias for each in route.dependant.query_params] if isinstance(route, APIRoute) else []
    for place, (name, _) in enumerate(sent):
        if name not in known:
            hint = did_you_mean(name, known) if known else "there are none: leave it out."
            raise Problem(422, f"this address has no parameter {quoted(name)}: {hint}", "unknown-parameter")
        if name in (other for other, _ in sent[:place]):
            raise Problem(422, f"the parameter {quoted(name)} is there twice: send it once.")
