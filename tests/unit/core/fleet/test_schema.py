"""The schema allows what the model allows, and refuses typical mistakes that the model refuses."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator
from pydantic import ValidationError

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.fleet.schema import schema_text
from fleetgauge_probes.connection.draft import Draft, render

ROOT = Path(__file__).parents[4]
SCHEMA = json.loads(schema_text())
ONE = {"id": "orders", "bootstrap": "orders:9092"}
DRAFT = render(Draft([ONE], "telemetry:9092", "./lake"), "fleet.yaml", for_editor=False)


def _faults(document: object) -> list[str]:
    # An editor's YAML (1.2) has no timestamps: what PyYAML reads as one is text there.
    plain = json.loads(json.dumps(document, default=lambda moment: moment.isoformat()))
    return [fault.message for fault in Draft7Validator(SCHEMA).iter_errors(plain)]


def _examples() -> list[str]:
    """Every fleet file that the documentation shows."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    blocks = [block for page in pages for block in re.findall(r"```yaml\n(.*?)```", page.read_text(), re.S)]
    return [block for block in blocks if "clusters:" in block]


def test_the_schema_is_one() -> None:
    Draft7Validator.check_schema(SCHEMA)


@pytest.mark.parametrize(
    "text", [*_examples(), DRAFT, "clusters: [{id: a, bootstrap: a:1, since: 2026-03-02T00:00:00Z}]"]
)
def test_schema_and_model_allow_every_example(text: str) -> None:
    document = yaml.safe_load(text)
    Fleet.model_validate(document)
    assert _faults(document) == []


def test_the_documentation_shows_a_file_with_every_key() -> None:
    page = (ROOT / "docs/configuration.md").read_text()
    parts = [SCHEMA, *SCHEMA["$defs"].values()]
    keys = {key for part in parts for key in part["properties"]}
    assert all(f"| `{key}` |" in page for key in keys)
    assert any(all(f"{key}:" in block for key in keys) for block in _examples())


@pytest.mark.parametrize(
    ("part", "key", "one"),
    [
        (name, key, one)
        for name, part in {"Fleet": SCHEMA, **SCHEMA["$defs"]}.items()
        for key, one in part["properties"].items()
    ],
)
def test_every_key_has_a_meaning_and_an_example(part: str, key: str, one: dict[str, Any]) -> None:
    assert one.get("description"), f"{part}.{key} has no description"
    assert one.get("examples") or "$ref" in json.dumps(one), f"{part}.{key} has no example"


@pytest.mark.parametrize(
    "more",
    [
        {"cluster": [ONE]},
        {"clusters": []},
        {"clusters": [{"id": "orders"}]},
        {"clusters": [ONE | {"id": "or ders"}]},
        {"clusters": [ONE | {"bootstrap": "http://orders:9092"}]},
        {"clusters": [ONE | {"regoin": "eu"}]},
        {"clusters": [ONE | {"labels": {"team": ["checkout"]}}]},
        {"clusters": [ONE | {"retired": ["four"]}]},
        {"clusters": [ONE | {"since": "2026-03-02"}]},
        {"clusters": [ONE | {"since": "2026-03-02T00:00:00"}]},
        {"clusters": [ONE | {"until": "next week"}]},
        {"clusters": [ONE | {"tier": ["multi-zone"]}]},
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
def test_schema_and_model_refuse_the_same_mistakes(more: dict[str, Any]) -> None:
    document = {"clusters": [ONE]} | more
    assert _faults(document)
    with pytest.raises(ValidationError):
        Fleet.model_validate(document)
