"""Simulated records on a real telemetry cluster: all of them, and apart from measured ones."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from fleetgauge_core.contract import PROBE_MINUTE, Leg
from fleetgauge_core.fleet import load
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_pipelines.jobs.simulate_cli import simulate
from tests.whole_topic import values_on


def _send(config: Path, to: Path) -> dict[str, int]:
    wish = ["--to", str(to), "--records", "topic", "--config", str(config)]
    length = ["--clusters", "2", "--minutes", "30", "--end", "2026-11-16T00:00:00Z", "--json"]
    result = CliRunner().invoke(simulate, [*wish, *length], catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    answer: dict[str, int] = json.loads(result.stdout)
    return answer


@pytest.fixture(scope="module")
def config(local_fleet: LocalFleet) -> Path:
    return local_fleet.fleet_file


def test_every_record_arrives_in_a_topic_that_no_measuring_fleet_reads(config: Path, tmp_path: Path) -> None:
    answer = _send(config, tmp_path / "to")
    simulated, measured = load(tmp_path / "to" / "fleet.yaml"), load(config)
    assert simulated.telemetry is not None
    assert measured.telemetry is not None
    names = {topic.name for _, topic in simulated.telemetry.topics}
    assert not names & {topic.name for _, topic in measured.telemetry.topics}
    there = simulated.telemetry
    values = values_on(there.access, there.topics.probe_minutes.name)
    found = [PROBE_MINUTE.decode(value) for value in values]
    distinct = {(record["run_id"], record["sequence"]) for record in found}
    assert len(distinct) == answer["records"] == answer["brokers"] * 30 * len(Leg)
    assert {record["cluster_id"] for record in found} == {cluster.id for cluster in simulated.clusters}


def test_a_fleet_that_is_simulated_itself_keeps_its_topics(config: Path, tmp_path: Path) -> None:
    _send(config, tmp_path / "to")
    _send(tmp_path / "to" / "fleet.yaml", tmp_path / "again")
    first, again = (load(tmp_path / name / "fleet.yaml") for name in ("to", "again"))
    assert first.telemetry == again.telemetry


def test_a_telemetry_cluster_that_does_not_answer_is_one_line(tmp_path: Path) -> None:
    config = tmp_path / "fleet.yaml"
    config.write_text(
        "telemetry: {bootstrap: '127.0.0.1:9'}\nclusters: [{id: orders, bootstrap: 'orders:9092'}]\n"
    )
    wish = ["--to", str(tmp_path / "to"), "--records", "topic", "--config", str(config)]
    result = CliRunner().invoke(simulate, wish, catch_exceptions=False, env={"COLUMNS": "200"})
    assert result.exit_code == 2
    assert "telemetry cannot be reached" in result.stderr.splitlines()[-1]
