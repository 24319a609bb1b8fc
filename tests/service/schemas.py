"""JSON values against JSON schemas: the words that a description of this service uses, and no others."""

from typing import Any

KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,), "null": (type(None),),
    "array": (list,), "object": (dict,),
}  # fmt: skip
WORDS = {
    "$ref", "additionalProperties", "anyOf", "const", "default", "description", "enum", "items", "maxItems", "minItems",
    "prefixItems", "properties", "required", "title", "type",
}  # fmt: skip


def faults(schema: dict[str, Any], value: Any, schemas: dict[str, Any], place: str = "answer") -> list[str]:
    """What is wrong with a value. An object has no fields but those that are described."""
    if "$ref" in schema:
        return faults(schemas[schema["$ref"].rpartition("/")[2]], value, schemas, place)
    unknown = set(schema) - WORDS
    assert not unknown, f"{place}: this test does not know {unknown}"
    if "anyOf" in schema:
        each = [faults(one, value, schemas, place) for one in schema["anyOf"]]
        return [] if [] in each else [*each[0], *each[-1]]
    kind = schema.get("type")
    if kind is None or not isinstance(value, KINDS[kind]) or (isinstance(value, bool) and kind != "boolean"):
        return [f"{place}: {value!r} is no {kind}"]
    if value not in schema.get("enum", [value]) or value != schema.get("const", value):
        return [f"{place}: {value!r} is not in {schema}"]
    if isinstance(value, list):
        items = schema.get("prefixItems") or [schema["items"]] * len(value)
        if len(items) != len(value):
            return [f"{place}: {len(value)} items, not {len(items)}"]
        return [fault for one, item in zip(items, value, strict=True) for fault in faults(one, item, schemas, place)]
    if isinstance(value, dict):
        inner, more = schema.get("properties", {}), schema.get("additionalProperties")
        found = [f"{place}.{name} is missing" for name in schema.get("required", ()) if name not in value]
        for name, item in value.items():
            described = inner.get(name, more)
            found += (
                faults(described, item, schemas, f"{place}.{name}")
                if described
                else [f"{place}.{name} is not described"]
            )
        return found
    return []
