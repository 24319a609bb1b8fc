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
    """Encode some values as a cursor."""
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(cursor: str, *kinds: type) -> list[Any]:
    """Decode a cursor; raise a problem unless its values have the types ``kinds``."""
    try:
        if len(cursor) > LONGEST:
            raise ValueError
        values = json.loads(base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True))
        if not isinstance(values, list) or [type(value) for value in values] != list(kinds):
            raise ValueError
    except (ValueError, RecursionError) as error:
        raise lost_cursor() from error
    return values


def page_start(cursor: str | None, *list_key: str | int) -> int:
    """Return the position where a page starts. ``list_key`` identifies the list; cursors of other lists are refused."""
    if cursor is None:
        return 0
    *its_list, start = read_cursor(cursor, *map(type, list_key), int)
    if its_list != list(list_key) or start < 0:
        raise lost_cursor()
    return int(start)


def cursor_at(place: int, total: int, *list_key: str | int) -> str | None:
    """Make a cursor to a position of the list that ``list_key`` identifies; None at its end."""
    return make_cursor(*list_key, place) if place < total else None


def lost_cursor() -> Problem:
    """Make the problem for a cursor of another list, or of an entry that is gone."""
    text = "the cursor belongs to another list, or its entry is gone: start again without a cursor."
    return Problem(422, text, "lost-cursor")
