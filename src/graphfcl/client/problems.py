"""Kinds of problems (RFC 9457). The ``type`` of a problem is ``PREFIX`` followed by its kind."""

PREFIX = "urn:graphfcl:problem:"

# Status and title of each kind. The first kind of a status is its default.
KINDS: dict[str, tuple[int, str]] = {
    "unreadable-request": (400, "The request cannot be read."),
    "token-needed": (401, "The token is missing or wrong."),
    "foreign-page": (403, "The request comes from a web page of another site."),
    "no-such-address": (404, "There is nothing at this address."),
    "unknown-node": (404, "A node is not in the graph."),
    "unknown-class": (404, "The model does not know a class."),
    "unknown-group": (404, "The version has no such group."),
    "unknown-version": (404, "There is no such version."),
    "method-not-allowed": (405, "The address does not take this method."),
    "conflict": (409, "The change contradicts what the model knows."),
    "former-class": (409, "A class was retired, renamed or merged."),
    "label-conflict": (409, "A node has another label."),
    "stale-version": (412, "The model has a newer version."),
    "too-large": (413, "The request is too large."),
    "not-json": (415, "The body is not declared as JSON."),
    "wrong-host": (421, "The request names another host."),
    "invalid-request": (422, "The request is not valid."),
    "unknown-parameter": (422, "The operation has no such parameter."),
    "unknown-field": (422, "The body has no such field."),
    "lost-cursor": (422, "The cursor is not valid for this list."),
    "reused-key": (422, "The idempotency key belongs to another request."),
    "internal-error": (500, "An unexpected error occurred."),
    "unavailable": (503, "The service cannot do this at the moment."),
    "busy": (503, "Too many changes wait, or another process is writing."),
    "damaged-folder": (503, "The model folder is damaged or cannot be read."),
}
