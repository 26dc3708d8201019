"""An incident on real topics, kept as a file, and judged anew."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from fleetgauge_core.fleet import Telemetry, load
from fleetgauge_core.kafka import RecordProducer, ensure_topics
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_operations.replay.cli import replay
from fleetgauge_operations.replay.incident import Incident
from tests.unit.core.detection.pulses import broker, pulse
from tests.unit.operations.replay.stories import hang, watched

FROM, TO = "2026-03-02T12:00:30Z", "2026-03-02T12:02:00Z"


@pytest.fixture
def config(local_fleet: LocalFleet, tmp_path: Path) -> Path:
    suffix = uuid.uuid4().hex[:8]
    topics: dict[str, Any] = {
        name: {"name": f"{name}-{suffix}", "partitions": 1, "retention_hours": 1}
        for name in ("probe_minutes", "probe_pulse", "health_events")
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
    found = load(config).telemetry
    assert found
    ensure_topics(found)
    return found


@pytest.fixture
def producer(telemetry: Telemetry) -> Iterator[RecordProducer]:
    one = RecordProducer(telemetry.access, "tests")
    one.start()
    yield one
    one.stop()


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
    done = CliRunner().invoke(replay, ["export", *arguments, *more, "--json"])
    return json.loads(done.stdout) if done.exit_code == 0 else (done.exit_code, done.stderr)


def test_what_was_said_and_found_is_kept_and_found_again(
    config: Path, telemetry: Telemetry, producer: RecordProducer, tmp_path: Path
) -> None:
    pulses, topics = hang(), telemetry.topics
    producer.send(topics.probe_pulse.name, "orders", b"noise")
    for one in pulses:
        producer.send(topics.probe_pulse.name, "orders", one.encode())
        other = pulse(0, broker(7), cluster="payments")
        producer.send(topics.probe_pulse.name, "payments", other.encode())
    found = watched(pulses)
    for finding in found:
        producer.send(topics.health_events.name, "orders", finding.event.encode())
    producer.stop()

    path = tmp_path / "hang.incident.gz"
    assert _export(config, path, "--note", "disk full") == {"file": str(path), "pulses": 25, "findings": 2}
    kept = Incident.read(path)
    assert kept.pulses == tuple(one for one in pulses if one.emitted_at <= kept.until)
    assert (list(kept.wanted), kept.note) == (found, "disk full")
    assert CliRunner().invoke(replay, ["run", str(path)]).exit_code == 0

    false_alarm = tmp_path / "false.incident.gz"
    assert _export(config, false_alarm, "--false-alarm")["findings"] == 0
    assert CliRunner().invoke(replay, ["run", str(false_alarm)]).exit_code == 1


def test_where_nothing_is_left_it_says_for_how_long_it_would_be(
    config: Path, telemetry: Telemetry, tmp_path: Path
) -> None:
    assert telemetry
    code, words = _export(config, tmp_path / "none.incident.gz")
    assert code == 2
    assert "no pulse of orders until 2026-03-02T12:02:00Z: they are kept for 1 hours" in words.replace(
        "\n", " "
    )
    assert not (tmp_path / "none.incident.gz").exists()
