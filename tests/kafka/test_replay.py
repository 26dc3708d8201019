"""An incident exported from real topics into a file, and replayed."""

import json
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from fleetgauge_core.fleet import Telemetry, load_fleet
from fleetgauge_core.kafka import RecordProducer, ensure_telemetry_topics
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_operations.changes.change_topic import ChangePublisher
from fleetgauge_operations.replay.cli import replay
from fleetgauge_operations.replay.incident import Incident
from tests.unit.core.detection.pulses import broker, pulse
from tests.unit.operations.replay.sample_incidents import build_hang_pulses, build_incident, detect_as_watch

FROM, TO = "2026-03-02T12:00:30Z", "2026-03-02T12:02:00Z"


@pytest.fixture
def config(local_fleet: LocalFleet, tmp_path: Path) -> Path:
    suffix = uuid.uuid4().hex[:8]
    topics: dict[str, Any] = {
        name: {"name": f"{name}-{suffix}", "partitions": 1, "retention_hours": 1}
        for name in ("probe_minutes", "probe_pulse", "health_events", "changes")
    }
    document = {
        "telemetry": {"bootstrap": local_fleet.bootstrap("telemetry"), "topics": topics},
        "clusters": [{"id": "orders", "bootstrap": "nobody:1"}, {"id": "payments", "bootstrap": "nobody:2"}],
    }
    path = tmp_path / "fleet.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


@pytest.fixture
def telemetry(config: Path) -> Telemetry:
    telemetry = load_fleet(config).telemetry
    assert telemetry
    ensure_telemetry_topics(telemetry)
    return telemetry


@pytest.fixture
def producer(telemetry: Telemetry) -> Iterator[RecordProducer]:
    producer = RecordProducer(telemetry.access, "tests")
    producer.start()
    yield producer
    producer.stop()


def _export(config: Path, out: Path, *more: str) -> Any:
    arguments = [
        "--cluster",
        "orders",
        "--from",
        FROM,
        "--to",
        TO,
        "--config",
        str(config),
        "--out",
        str(out),
    ]
    result = CliRunner().invoke(replay, ["export", *arguments, *more, "--json"])
    return json.loads(result.stdout) if result.exit_code == 0 else (result.exit_code, result.stderr)


def test_an_exported_incident_replays_to_the_same_findings(
    config: Path, telemetry: Telemetry, producer: RecordProducer, tmp_path: Path
) -> None:
    pulses, topics = build_hang_pulses(), telemetry.topics
    producer.send(topics.probe_pulse.name, "orders", b"noise")
    for orders_pulse in pulses:
        producer.send(topics.probe_pulse.name, "orders", orders_pulse.encode())
        payments_pulse = pulse(0, broker(7), cluster="payments")
        producer.send(topics.probe_pulse.name, "payments", payments_pulse.encode())
    findings = detect_as_watch(pulses)
    for finding in findings:
        producer.send(topics.health_events.name, "orders", finding.event.encode())
    producer.stop()
    (deploy,) = build_incident(pulses).changes
    of_another, of_all = (
        replace(deploy, event_id="2", change_id="2", cluster_id="payments"),
        replace(deploy, event_id="3", change_id="3", cluster_id=None, segment="fleet", segment_value=""),
    )
    ChangePublisher(telemetry).publish([deploy, of_another, of_all])

    path = tmp_path / "hang.incident.gz"
    counts = {"pulses": 25, "findings": 2, "changes": 2}
    assert _export(config, path, "--note", "disk full") == {"file": str(path), **counts}
    kept = Incident.read(path)
    assert set(kept.changes) == {deploy, of_all}
    assert kept.pulses == tuple(pulse for pulse in pulses if pulse.emitted_at <= kept.until)
    assert (list(kept.expected), kept.note) == (findings, "disk full")
    assert CliRunner().invoke(replay, ["run", str(path)]).exit_code == 0

    false_alarm = tmp_path / "false.incident.gz"
    assert _export(config, false_alarm, "--false-alarm")["findings"] == 0
    assert CliRunner().invoke(replay, ["run", str(false_alarm)]).exit_code == 1


def test_an_export_without_pulses_reports_their_retention(
    config: Path, telemetry: Telemetry, tmp_path: Path
) -> None:
    assert telemetry
    exit_code, message = _export(config, tmp_path / "none.incident.gz")
    assert exit_code == 2
    assert "no pulse of orders until 2026-03-02T12:02:00Z: pulses are retained for 1 h" in message.replace(
        "\n", " "
    )
    assert not (tmp_path / "none.incident.gz").exists()
