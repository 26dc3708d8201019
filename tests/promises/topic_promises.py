"""Topics of the telemetry cluster, the schemas of their records, and the ACLs for them."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from click.testing import CliRunner

from fleetgauge_core.contract import (
    CLUSTER_CHANGE,
    EARLIER_PROBE_PULSES,
    HEALTH_EVENT,
    PROBE_MINUTE,
    PROBE_PULSE,
    AvroSchema,
)
from fleetgauge_core.fleet import Topics
from fleetgauge_core.runtime.cli import main

_FLEET = {"telemetry": {"bootstrap": "t:9092"}, "clusters": [{"id": "orders", "bootstrap": "o:9092"}]}


def collect() -> Iterator[str]:
    for use, topic in Topics():
        yield from (f"{use}: {name} {value}" for name, value in topic.model_dump(mode="json").items())
    for schema in (PROBE_MINUTE, PROBE_PULSE, *EARLIER_PROBE_PULSES, HEALTH_EVENT, CLUSTER_CHANGE):
        yield from _describe_schema(schema)
    yield from (f"granted: {line}" for line in _list_acls())


def _describe_schema(schema: AvroSchema) -> Iterator[str]:
    """Yield each record schema's versions, identified by their fingerprints."""
    document = json.loads(schema.text)
    name = f"{document['name']} {schema.fingerprint.hex()}"
    yield f"{name}: schema"
    yield from (f"{name}: {field}" for field in _fields(document, ""))


def _fields(kind: Any, prefix: str) -> Iterator[str]:
    """Yield each field with its type, including nested records."""
    match kind:
        case {"type": "record", "fields": fields}:
            for field in fields:
                path = f"{prefix}.{field['name']}".lstrip(".")
                yield f"{path} {_type(field['type'])}"
                yield from _fields(field["type"], path)
        case {"type": "array", "items": items}:
            yield from _fields(items, f"{prefix}[]")


def _type(kind: Any) -> str:
    match kind:
        case str():
            return kind
        case list():
            return " or ".join(map(_type, kind))
        case {"type": "array", "items": items}:
            return f"list of {_type(items)}"
        case {"type": "map", "values": values}:
            return f"map of {_type(values)}"
        case Mapping():
            return str(kind.get("logicalType") or kind.get("name") or kind["type"])
    raise TypeError(f"no Avro type: {kind}")


def _list_acls() -> list[str]:
    """Return the ACLs that `probe acls` prints: the minimum that an agent needs."""
    with TemporaryDirectory() as folder:
        config = Path(folder, "fleet.yaml")
        config.write_text(json.dumps(_FLEET), encoding="utf-8")
        result = CliRunner().invoke(main, ["probe", "acls", "--config", str(config)])
    return result.stdout.splitlines()
