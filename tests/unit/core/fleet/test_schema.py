"""The JSON Schema accepts what the model accepts, and rejects typical mistakes that the model rejects."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator
from pydantic import ValidationError

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.fleet.schema import fleet_json_schema
from fleetgauge_probes.connection.draft import FleetDraft, render_fleet_file

ROOT = Path(__file__).parents[4]
SCHEMA = json.loads(fleet_json_schema())
CLUSTER = {"id": "orders", "bootstrap": "orders:9092"}
DRAFT = render_fleet_file(FleetDraft([CLUSTER], "telemetry:9092", "./lake"), "fleet.yaml", has_schema=False)


def _errors(document: object) -> list[str]:
    # Editors read YAML 1.2, in which the timestamps of PyYAML (YAML 1.1) are strings.
    yaml_1_2 = json.loads(json.dumps(document, default=lambda timestamp: timestamp.isoformat()))
    return [error.message for error in Draft7Validator(SCHEMA).iter_errors(yaml_1_2)]


def _examples() -> list[str]:
    """Return all fleet files in the documentation."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    blocks = [block for page in pages for block in re.findall(r"```yaml\n(.*?)```", page.read_text(), re.S)]
    return [block for block in blocks if "clusters:" in block]


def test_the_schema_is_a_valid_draft_7_schema() -> None:
    Draft7Validator.check_schema(SCHEMA)


@pytest.mark.parametrize(
    "text", [*_examples(), DRAFT, "clusters: [{id: a, bootstrap: a:1, since: 2026-03-02T00:00:00Z}]"]
)
def test_schema_and_model_accept_every_example(text: str) -> None:
    document = yaml.safe_load(text)
    Fleet.model_validate(document)
    assert _errors(document) == []


def test_the_documentation_contains_every_key_and_a_file_with_all_keys() -> None:
    page = (ROOT / "docs/configuration.md").read_text()
    parts = [SCHEMA, *SCHEMA["$defs"].values()]
    keys = {key for part in parts for key in part["properties"]}
    assert all(f"| `{key}` |" in page for key in keys)
    assert any(all(f"{key}:" in block for key in keys) for block in _examples())


@pytest.mark.parametrize(
    ("part", "key", "schema"),
    [
        (name, key, schema)
        for name, part in {"Fleet": SCHEMA, **SCHEMA["$defs"]}.items()
        for key, schema in part["properties"].items()
    ],
)
def test_every_key_has_a_description_and_an_example(part: str, key: str, schema: dict[str, Any]) -> None:
    assert schema.get("description"), f"{part}.{key} has no description"
    assert schema.get("examples") or "$ref" in json.dumps(schema), f"{part}.{key} has no example"


@pytest.mark.parametrize(
    "changes",
    [
        {"cluster": [CLUSTER]},
        {"clusters": []},
        {"clusters": [{"id": "orders"}]},
        {"clusters": [CLUSTER | {"id": "or ders"}]},
        {"clusters": [CLUSTER | {"bootstrap": "http://orders:9092"}]},
        {"clusters": [CLUSTER | {"regoin": "eu"}]},
        {"clusters": [CLUSTER | {"labels": {"team": ["checkout"]}}]},
        {"clusters": [CLUSTER | {"retired": ["four"]}]},
        {"clusters": [CLUSTER | {"since": "2026-03-02"}]},
        {"clusters": [CLUSTER | {"since": "2026-03-02T00:00:00"}]},
        {"clusters": [CLUSTER | {"until": "next week"}]},
        {"clusters": [CLUSTER | {"tier": ["multi-zone"]}]},
        {"objectives": {"multi-zone": {"latency_p99_ms": 100, "availability": 99.99}}},
        {"objectives": {"multi-zone": {"latency_p99_ms": 100}}},
        {"week": {"start": "Monday"}},
        {"agent_late_ms": 0},
        {"burn_alerts": {"period_days": 28}},
        {"agent_late_ms": "100 ms"},
        {"vantage": "zone a"},
        {"telemetry": "telemetry:9092"},
        {"telemetry": {"bootstrap": "t:1", "topics": {"probe_pulse": {"name": "p", "partitions": 3}}}},
        {"notifiers": [{"kind": "webhook", "url": "hooks.example"}]},
        {"notifiers": {"kind": "webhook", "url": "https://hooks.example"}},
    ],
)
def test_schema_and_model_reject_the_same_mistakes(changes: dict[str, Any]) -> None:
    document = {"clusters": [CLUSTER]} | changes
    assert _errors(document)
    with pytest.raises(ValidationError):
        Fleet.model_validate(document)
