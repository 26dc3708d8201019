import json
from dataclasses import fields

import pytest

from fleetgauge_core.contract import (
    EARLIER_PROBE_PULSES,
    HEALTH_EVENT,
    PROBE_MINUTE,
    PROBE_PULSE,
    AvroSchema,
    BrokerPulse,
    HealthEvent,
    LegPulse,
    ProbeMinute,
    ProbePulse,
)

PULSE = json.loads(PROBE_PULSE.text)
BROKER = next(f for f in PULSE["fields"] if f["name"] == "brokers")["type"]["items"]
LEG = next(f for f in BROKER["fields"] if f["name"] == "legs")["type"]["items"]


@pytest.mark.parametrize(
    ("schema", "record"),
    [
        (json.loads(PROBE_MINUTE.text), ProbeMinute),
        (PULSE, ProbePulse),
        (BROKER, BrokerPulse),
        (LEG, LegPulse),
        (json.loads(HEALTH_EVENT.text), HealthEvent),
    ],
)
def test_a_schema_lists_the_fields_of_its_record_in_order(
    schema: dict[str, list[dict[str, str]]], record: type
) -> None:
    assert [field["name"] for field in schema["fields"]] == [field.name for field in fields(record)]


@pytest.mark.parametrize(
    ("schema", "fingerprint"),
    [
        (PROBE_MINUTE, "72efb2cf5248ecec"),
        (EARLIER_PROBE_PULSES[2], "95fbc8cbdfe633c3"),
        (EARLIER_PROBE_PULSES[1], "1e58eb6ae52cd798"),
        (EARLIER_PROBE_PULSES[0], "3385f3f65ef22b7c"),
        (PROBE_PULSE, "f2dd9a3c13d943cc"),
        (HEALTH_EVENT, "ade86eae3b83a3b9"),
    ],
)
def test_a_published_schema_version_keeps_its_fingerprint(schema: AvroSchema, fingerprint: str) -> None:
    assert schema.fingerprint.hex() == fingerprint
