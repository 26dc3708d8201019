"""Keys of fleet.yaml: type, whether required, default, allowed words, bounds and placeholders."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from fleetgauge_core.fleet.schema import fleet_json_schema

Schema = Mapping[str, Any]

_BOUNDS = (
    "minimum",
    "exclusiveMinimum",
    "maximum",
    "exclusiveMaximum",
    "minItems",
    "minLength",
    "pattern",
    "format",
)
_PLACEHOLDER = re.compile(r"\{[a-z_]+\}")


def collect() -> Iterator[str]:
    schema = json.loads(fleet_json_schema())
    yield from _keys(schema, schema["$defs"], "", ())


def _keys(part: Schema, definitions: Schema, prefix: str, around: tuple[str, ...]) -> Iterator[str]:
    """Yield the entries of an object and its nested objects; a recursive type is visited once."""
    for key, schema in part.get("properties", {}).items():
        path = f"{prefix}{key}"
        yield f"{path}: {'required' if key in part.get('required', ()) else 'optional'}"
        if "default" in schema:
            yield from _defaults(path, schema["default"])
        yield from _placeholders(path, schema)
        yield from _value(schema, definitions, path, around)


def _defaults(path: str, value: Any) -> Iterator[str]:
    """Yield one line per property of a key, so that a new key is an added line."""
    if isinstance(value, Mapping) and value:
        for key, below in value.items():
            yield from _defaults(f"{path}.{key}", below)
    else:
        yield f"{path}: default {json.dumps(_whole(value))}"


def _whole(value: Any) -> Any:
    """Return the number without a trailing .0, as both forms are equal in fleet.yaml."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _placeholders(path: str, schema: Schema) -> Iterator[str]:
    """Yield the placeholders in the key's description and examples."""
    text = json.dumps([schema.get("description"), schema.get("examples")])
    yield from (f"{path}: placeholder {name}" for name in set(_PLACEHOLDER.findall(text)))


def _value(schema: Schema, definitions: Schema, path: str, around: tuple[str, ...]) -> Iterator[str]:
    """Return the type of a key's value: a scalar, list, map, object or union."""
    for choice in schema.get("anyOf", ()):
        yield from _value(choice, definitions, path, around)
    if name := schema.get("$ref", "").rpartition("/")[2]:
        yield from _reference(name, definitions, path, around)
    if schema.get("type") == "array":
        yield f"{path}: list"
        yield from _value(schema["items"], definitions, f"{path}[]", around)
    elif isinstance(schema.get("additionalProperties"), Mapping):
        yield f"{path}: map"
        yield from _value(schema["additionalProperties"], definitions, f"{path}.*", around)
    else:
        yield from _scalar(schema, path)


def _reference(name: str, definitions: Schema, path: str, around: tuple[str, ...]) -> Iterator[str]:
    if name not in around:
        yield f"{path}: keys"
        yield from _keys(definitions[name], definitions, f"{path}.", (*around, name))


def _scalar(schema: Schema, path: str) -> Iterator[str]:
    words = schema.get("enum", [schema["const"]] if "const" in schema else [])
    yield from (f"{path}: may be {json.dumps(word)}" for word in words)
    yield from (f"{path}: {bound} {schema[bound]}" for bound in _BOUNDS if bound in schema)
    if "type" in schema:
        yield f"{path}: {schema['type']}"
