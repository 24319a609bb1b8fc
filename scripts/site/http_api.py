"""The page of the HTTP API, made from the OpenAPI description of the service."""

import inspect
import re
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from graphfcl import GraphClassifier, load_dataset
from graphfcl.client import Client
from graphfcl.client.problems import KINDS
from graphfcl.service.app import make_app

GRAPH = "synthetic:nodes=200,edges=800,classes=6,features=30,signal=1.0"
CHANGES = """These routes need the token. Each of them may also answer `token-needed`, `stale-version` (`If-Match` names
another version), `reused-key`, `not-json`, `busy` or `damaged-folder`. Nothing is changed then."""
SECTIONS = {
    "read": ("Read", "These routes read the model. On a loopback address they need no token."),
    "change": ("Change", CHANGES),
    "health": ("Health and metrics", "For load balancers and Prometheus."),
    "kserve": ("KServe protocol", "The Open Inference Protocol, version 2, for platforms that know it."),
}
LEAD = """# HTTP API

A running service describes itself in `/openapi.json`; this page is made from that description.
[HTTP service](../service.md) shows how to start a service and how to call it.

- **Token.** Send `Authorization: Bearer TOKEN`. Without `--host`, reading needs no token.
- **Version.** Every answer names the model version that it describes, in the field `version` and at the start of the
  header `ETag`. With `If-None-Match`, an unchanged answer is 304 without a body.
- **Changes.** A route that changes the model takes two optional headers. `If-Match: "7"` makes the change only if the
  model has version 7. `Idempotency-Key: TEXT` makes it at most once, however often the request is sent.
- **Pages.** To read the next page of a list, send its `next_cursor` as `cursor`. It is null on the last page. If a list
  changes between two pages, no entry comes twice.
- **Ids.** Percent-encode the whole id in an address: `a/b` is `a%2Fb`. Ids are strings in answers; a body may use
  integers too. A class is a number in answers if the model has integer classes. It is a string beyond 2⁵³, which
  JavaScript would round, and in the KServe protocol. In a body, `7` and `"7"` name the same class of such a model.
- **Fields.** A parameter or field that a route does not have is refused. `HEAD` works wherever `GET` does.
  `Accept-Encoding: gzip` compresses answers.
"""
ERRORS = """## Errors

An error is `application/problem+json` (RFC 9457): `type`, `title`, `status`, `detail`, and often the `version` of the
model. `type` is `urn:graphfcl:problem:` and one of these kinds. `detail` is a sentence for people. The Python client
raises `ServiceError` with the kind.
"""
COMMON = ("if-match", "idempotency-key")  # headers that the lead describes
NODES = {"ids", "labels", "tasks", "sources", "leave_out"}  # fields of bodies that name nodes of the graph
FORMER = ("PATCH /v1/classes/{name}", "DELETE /v1/classes/{name}", "POST /v1/classes/{name}/merge")
PARAMETERS = {  # the meanings of parameters that several routes have
    "budget": "Number of suggestions.",
    "count": "Number of groups.",
    "limit": "Largest number of entries on a page.",
    "name": "Name of the class.",
    "node": "Id of the node.",
    "nodes": "Which nodes to list.",
    "number": "Number of the entry in its list.",
    "strategy": "Strategy that chooses the nodes.",
    "version": "Number of the version.",
}
HINTS = {  # what to do about a problem, where its title does not say it
    "foreign-page": "Only the service's own page may call it from a browser.",
    "former-class": '`"again": true` teaches the name as a new class.',
    "label-conflict": 'Send `"on_conflict": "keep"` or `"replace"`.',
    "stale-version": "Read again, and repeat the request with the new version in `If-Match`.",
    "too-large": "A body may have 1 MiB, and a request 1,000 ids or labels; `detail` has the limit that was passed.",
    "not-json": "Send `Content-Type: application/json`.",
    "wrong-host": "To accept this name, start the service with `--allow-host`.",
    "invalid-request": "`detail` says why.",
    "unknown-parameter": "`detail` names the most similar one.",
    "unknown-field": "`detail` names the most similar one.",
    "lost-cursor": "It belongs to another list, or its entry is gone: start again without a cursor.",
    "internal-error": "The model is unchanged; the log of the service has more.",
    "busy": "A change waits at most 30 s for another process: try again after `Retry-After`.",
    "damaged-folder": "Reads continue from the last complete version; `graphfcl rollback` repairs the folder.",
}


@cache
def description() -> dict[str, Any]:
    """The OpenAPI description, from a service of a small model."""
    graph, _ = load_dataset(GRAPH)
    with tempfile.TemporaryDirectory() as folder:
        model = GraphClassifier("sgc-ridge").fit(graph)
        model.save(Path(folder) / "model")
        model.wait()
        return make_app(Path(folder) / "model").openapi()


def http_page() -> str:
    """Routes by what they are for, then the types of their answers, then the errors."""
    api = description()
    schemas = api["components"]["schemas"]
    routes: dict[str, list[str]] = {tag: [] for tag in SECTIONS}
    for path, methods in api["paths"].items():
        for method, route in methods.items():
            routes[route["tags"][0]].append(_route(f"{method.upper()} {path}", route, schemas))
    parts = [LEAD]
    for tag, (title, lead) in SECTIONS.items():
        parts += [f"## {title}", lead, *routes[tag]]
    every = [route for path in api["paths"].values() for route in path.values()]
    sent = [schemas[_body(route)]["properties"] for route in every if "requestBody" in route]
    types = sorted(_used([[route["responses"]["200"] for route in every], sent], schemas))
    parts += [
        "## Types",
        "The types of answers, and of parts of answers and bodies. A field with a default may be missing.",
    ]
    parts += [part for name in types for part in _type(name, schemas[name])]
    return "\n\n".join([*parts, _errors()]) + "\n"


def _route(address: str, route: dict[str, Any], schemas: dict[str, Any]) -> str:
    parts = [f"### `{address}` {{: #{route['operationId']} }}", _text(route["description"])]
    parameters = [each for each in route.get("parameters", []) if each["name"].lower() not in COMMON]
    rows = []
    for each in parameters:
        kind, name = _kind(each["schema"]).removesuffix(" or null"), each["name"]
        meanings = (
            PARAMETERS if address.partition(" ")[2].startswith("/v1/") else {"name": "Name of the model's folder."}
        )
        meaning = _text(each.get("description") or meanings.get(name, ""))
        rows.append([f"`{name}`", each["in"], kind, _default(each["schema"], required=each["required"]), meaning])
    if rows:
        parts.append(_table(["parameter", "in", "type", "default", "meaning"], rows))
    names = {each["name"] for each in parameters}
    if "requestBody" in route:
        body = schemas[_body(route)]
        names |= body["properties"].keys()
        parts += [f"**Body.** {_fields(body)}"]
    ((media, content),) = route["responses"]["200"]["content"].items()
    answer = _kind(content["schema"]) if media == "application/json" else f"`{media}`"
    client = getattr(Client, route["operationId"], None)
    call = "" if client is None else f" Client: `client.{route['operationId']}({_arguments(client)})`."
    kinds = ", ".join(f"`{kind}`" for kind in _problems(address, names))
    return "\n\n".join([*parts, f"**Answer.** {answer}.{call}", *([f"**Errors.** {kinds}."] if kinds else [])])


def _body(route: dict[str, Any]) -> str:
    return _kind(route["requestBody"]["content"]["application/json"]["schema"], link=False)


def _problems(address: str, names: set[str]) -> list[str]:
    """The kinds of problems that belong to one route, by its address and the fields that are sent."""
    new_nodes = address == "POST /v1/nodes"
    kinds = {
        "unknown-node": "{node}" in address or (bool(names & NODES) and not new_nodes),
        "unknown-class": "/classes/{name}" in address or "class" in names,
        "unknown-version": "{version}" in address,
        "unknown-group": "/groups/{number}" in address,
        "former-class": "again" in names or address in FORMER,
        "label-conflict": "on_conflict" in names,
        "lost-cursor": "cursor" in names,
    }
    return [kind for kind, may_come in kinds.items() if may_come]


def _arguments(method: Any) -> str:
    """The parameters of a method without types, and those that every change has."""
    parameters = [each.replace(annotation=each.empty) for each in inspect.signature(method).parameters.values()]
    plain = [each for each in parameters if each.name not in ("self", "if_version", "key")]
    return str(inspect.Signature(plain))[1:-1].removesuffix(", *")


def _type(name: str, schema: dict[str, Any]) -> list[str]:
    return [f"### {name} {{: #type-{name} }}", _fields(schema)]


def _fields(schema: dict[str, Any]) -> str:
    """The description of a type, and a table of its fields."""
    properties, required = schema.get("properties", {}), schema.get("required", [])
    with_defaults = any(key not in required for key in properties)
    rows = []
    for key, value in properties.items():
        default = [_default(value, required=key in required)] if with_defaults else []
        rows.append([f"`{key}`", _kind(value), *default, _text(value.get("description", ""))])
    titles = ["field", "type", *(["default"] if with_defaults else []), "meaning"]
    return f"{_text(schema['description'])}\n\n{_table(titles, rows)}"


def _used(value: Any, schemas: dict[str, Any]) -> set[str]:
    """The names of all types that a description leads to."""
    found: set[str] = set()
    new = set(re.findall(r"#/components/schemas/(\w+)", str(value)))
    while new - found:
        found |= new
        new = {name for each in found for name in re.findall(r"#/components/schemas/(\w+)", str(schemas[each]))}
    return {name for name in found if name != "Problem"}


def _kind(schema: dict[str, Any], *, link: bool = True) -> str:
    """The type of a value in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#type-{name})" if link else name
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_kind(each, link=link) for each in schema["anyOf"]))
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{each}`" for each in schema.get("enum", [schema.get("const")]))
    if "prefixItems" in schema:
        return f"[{', '.join(_kind(each, link=link) for each in schema['prefixItems'])}]".replace("[", "\\[")
    if schema.get("type") == "array":
        return f"list of {_kind(schema['items'], link=link)}"
    return str(schema.get("type", "any"))


def _default(schema: dict[str, Any], *, required: bool) -> str:
    value = schema.get("default")
    return "required" if required else "" if value in (None, "", []) else f"`{str(value).lower()}`"


def _table(titles: list[str], rows: list[list[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _text(text: str) -> str:
    """A docstring as Markdown: paragraphs, code, and nothing that a table takes for its own."""
    return "\n\n".join(
        " ".join(each.split()) for each in re.sub(r"\bNone\b", "null", text).replace("``", "`").split("\n\n")
    ).replace("|", "\\|")


def _errors() -> str:
    rows = []
    for kind, (status, title) in KINDS.items():
        rows.append([f"`{kind}`", str(status), f"{title} {HINTS.get(kind, '')}".strip()])
    return f"{ERRORS}\n{_table(['kind', 'status', 'meaning'], rows)}"
