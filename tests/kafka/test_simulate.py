"""Simulated records on a real telemetry cluster: complete, and separate from measured records."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from fleetgauge_core.contract import PROBE_MINUTE, Leg
from fleetgauge_core.fleet import load_fleet
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_pipelines.jobs.simulate_cli import simulate
from tests.topic_values import read_values


def _send(config: Path, to: Path) -> dict[str, int]:
    output = ["--to", str(to), "--records", "topic", "--config", str(config)]
    length = ["--clusters", "2", "--minutes", "30", "--end", "2026-11-16T00:00:00Z", "--json"]
    result = CliRunner().invoke(simulate, [*output, *length], catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    summary: dict[str, int] = json.loads(result.stdout)
    return summary


@pytest.fixture(scope="module")
def config(local_fleet: LocalFleet) -> Path:
    return local_fleet.fleet_file


def test_every_record_arrives_in_topics_that_the_measured_fleet_does_not_use(
    config: Path, tmp_path: Path
) -> None:
    summary = _send(config, tmp_path / "to")
    simulated, measured = load_fleet(tmp_path / "to" / "fleet.yaml"), load_fleet(config)
    assert simulated.telemetry is not None
    assert measured.telemetry is not None
    names = {topic.name for _, topic in simulated.telemetry.topics}
    assert not names & {topic.name for _, topic in measured.telemetry.topics}
    telemetry = simulated.telemetry
    values = read_values(telemetry.access, telemetry.topics.probe_minutes.name)
    records = [PROBE_MINUTE.decode(value) for value in values]
    distinct = {(record["run_id"], record["sequence"]) for record in records}
    assert len(distinct) == summary["records"] == summary["brokers"] * 30 * len(Leg)
    assert {record["cluster_id"] for record in records} == {cluster.id for cluster in simulated.clusters}


def test_simulating_a_simulated_fleet_keeps_its_topics(config: Path, tmp_path: Path) -> None:
    _send(config, tmp_path / "to")
    _send(tmp_path / "to" / "fleet.yaml", tmp_path / "again")
    first, again = (load_fleet(tmp_path / name / "fleet.yaml") for name in ("to", "again"))
    assert first.telemetry == again.telemetry


def test_an_unreachable_telemetry_cluster_is_reported_in_one_line(tmp_path: Path) -> None:
    config = tmp_path / "fleet.yaml"
    config.write_text(
        "telemetry: {bootstrap: '127.0.0.1:9'}\nclusters: [{id: orders, bootstrap: 'orders:9092'}]\n"
    )
    output = ["--to", str(tmp_path / "to"), "--records", "topic", "--config", str(config)]
    result = CliRunner().invoke(simulate, output, catch_exceptions=False, env={"COLUMNS": "200"})
    assert result.exit_code == 2
    assert "cannot reach the telemetry cluster" in result.stderr.splitlines()[-1]
