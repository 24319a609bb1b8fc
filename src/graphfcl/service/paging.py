"""Cursors, which say where the next page of a list starts. They are opaque to clients."""

import base64
import json
from typing import Annotated, Any

from fastapi import Query

from graphfcl.service.problems import Problem

LONGEST = 4_000  # characters of a cursor

Limit = Annotated[int, Query(ge=1)]
Cursor = Annotated[
    str | None, Query(description="``next_cursor`` of the previous page; leave it out for the first page.")
]


def make_cursor(*values: str | int) -> str:
    """A cursor that holds some values."""
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(cursor: str, *kinds: type) -> list[Any]:
    """The values of a cursor, which have these types; other texts are refused."""
    try:
        if len(cursor) > LONGEST:
            raise ValueError
        values = json.loads(base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True))
        if not isinstance(values, list) or [type(value) for value in values] != list(kinds):
            raise ValueError
    except (ValueError, RecursionError) as error:
        raise lost_cursor() from error
    return values


def page_start(cursor: str | None, *of: str | int) -> int:
    """The place where a page starts. of: identifies the list, such as its version; other cursors are refused."""
    if cursor is None:
        return 0
    *its_list, start = read_cursor(cursor, *map(type, of), int)
    if its_list != list(of) or start < 0:
        raise lost_cursor()
    return int(start)


def cursor_at(place: int, total: int, *of: str | int) -> str | None:
    """A cursor to a place in such a list; None at its end."""
    return make_cursor(*of, place) if place < total else None


def lost_cursor() -> Problem:
    """The problem for a cursor of another list, or of an entry that is gone."""
    text = "this cursor is none of this list, or what it points to is gone: start again without cursor."
    return Problem(422, text, "lost-cursor")
