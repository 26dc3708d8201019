"""Budget findings recomputed from the tables are those of the watch for the same records."""

import json
from contextlib import nullcontext
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from fleetgauge_core.contract import ClusterChange, ProbeMinute
from fleetgauge_core.detection import (
    Finding,
    FindingSubject,
    FleetBurnState,
    HealthCondition,
    HealthState,
    exclude_paged_errors,
    fold_minute_record,
)
from fleetgauge_core.detection.finding import build_finding
from fleetgauge_core.detection.objectives import derive_burn_settings
from fleetgauge_core.fleet import Fleet
from fleetgauge_core.tables import CHANGES, HEALTH_EVENTS
from fleetgauge_pipelines.jobs import backtest_command
from fleetgauge_pipelines.jobs.backtest import read_recorded_findings, recompute_findings
from fleetgauge_pipelines.jobs.backtest_cli import backtest
from fleetgauge_pipelines.jobs.backtest_command import (
    BacktestVerdict,
    compare_episodes,
    select_budget_episodes,
)
from tests.probe_minutes import MINUTE, NOON
from tests.spark.agreement import write_rows
from tests.spark.lakes import opened, raw_frame
from tests.unit.core.detection.test_burn_fold import at, minutes, outage

#: A budget that goes with nobody named for it, and one that a named broker spends.
CLUSTERS = ("orders", "payments")
STORY = [*minutes(0, 60), *minutes(60, 70, failed=100), *minutes(70, 110)]
NAMED, CLEARED = outage(60.5, 71)
END = at(109)


def of_cluster(record: ProbeMinute, cluster_id: str) -> ProbeMinute:
    fields: dict[str, Any] = {name: getattr(record, name) for name in record.__slots__}
    return ProbeMinute(**fields | {"cluster_id": cluster_id, "run_id": f"{cluster_id}{record.run_id}"})


def of_payments(finding: Finding) -> Finding:
    subject = FindingSubject("payments", HealthCondition.BROKER_DOWN, 2)
    return build_finding(subject, finding.from_state, finding.to_state, finding.event.at, {})


def of_no_end() -> Finding:
    """Return a finding about a path that is not cleared."""
    return build_finding(
        FindingSubject("orders", HealthCondition.PATH),
        HealthState.HEALTHY,
        HealthState.PATH,
        NAMED.event.at,
        {},
    )


def watched(fleet: Fleet, records: list[ProbeMinute], recorded: list[Finding]) -> list[Finding]:
    """Fold records and findings as a watch receives them: records arrive 73 s after their minute's start."""
    settings = {cluster.id: derive_burn_settings(fleet, cluster) for cluster in fleet.clusters}
    inputs: list[tuple[Any, int, ProbeMinute | Finding]] = [
        (record.minute + timedelta(seconds=73), 1, record) for record in records
    ]
    inputs += [(finding.event.at, 0, finding) for finding in recorded]
    state, findings = FleetBurnState(), list[Finding]()
    for _, _, received in sorted(inputs, key=lambda timed: timed[:2]):
        if isinstance(received, Finding):
            state = exclude_paged_errors(state, received)
        else:
            state, new_findings = fold_minute_record(state, received, settings[received.cluster_id])
            findings += new_findings
    return findings


def test_recomputed_budget_findings_are_those_of_the_watch(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fleet = Fleet.model_validate(
        {"clusters": [{"id": cluster_id, "bootstrap": "nobody:1"} for cluster_id in CLUSTERS]}
    )
    records = [of_cluster(record, cluster_id) for cluster_id in CLUSTERS for record in STORY]
    recorded = [of_payments(NAMED), of_payments(CLEARED)]
    expected = watched(fleet, records, recorded)
    lake, pipeline = opened(spark, tmp_path / "lake", fleet)
    values = [record.encode() for record in records]
    pipeline.process(raw_frame(spark, values), "records", NOON + timedelta(hours=3))
    events = [asdict(finding.event) for finding in (*recorded, *expected, of_no_end())]
    write_rows(tmp_path / "lake", HEALTH_EVENTS, events)

    recomputed = recompute_findings(lake, fleet, NOON, END)
    assert "ignored a health event that cannot be parsed" in caplog.text
    assert [finding.event for finding in recomputed] == sorted(
        (finding.event for finding in expected if finding.event.at < END),
        key=lambda event: (event.at, event.event_id),
    )
    assert {finding.subject.cluster_id for finding in recomputed} == {"orders"}
    pairs = list(
        compare_episodes(
            select_budget_episodes(recomputed),
            select_budget_episodes(read_recorded_findings(lake, NOON, END)),
        )
    )
    assert pairs
    assert {verdict for verdict, _ in pairs} == {BacktestVerdict.SAME}

    deploy = ClusterChange(
        "event",
        "change",
        "orders",
        "deploy",
        "happened",
        at(58),
        at(58),
        at(58),
        "command",
        title="orders 2.4",
    )
    write_rows(
        tmp_path / "lake",
        CHANGES,
        [
            asdict(deploy),
            asdict(replace(deploy, event_id="event 2", change_id="change 2", cluster_id="payments")),
        ],
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(backtest_command, "open_lake_for_reading", lambda _: nullcontext((spark, lake)))
        arguments = ["--from", f"{NOON:%FT%TZ}", "--to", f"{END:%FT%TZ}", "--lake", str(tmp_path / "lake")]
        config = tmp_path / "fleet.yaml"
        config.write_text(fleet.model_dump_json(include={"clusters": {"__all__": {"id", "bootstrap"}}}))
        result = CliRunner().invoke(backtest, [*arguments, "--config", str(config), "--json"])
    assert result.exit_code == 0, result.output
    alerts = json.loads(result.stdout)
    assert {alert["cluster"] for alert in alerts} == {"orders"}
    # The alert is opened minutes after the deploy.
    assert alerts[0]["changes"] == [{"change_id": "change", "kind": "deploy", "broker": None}]

    strict = fleet.model_copy(
        update={"burn_alerts": fleet.burn_alerts.model_copy(update={"period_days": 30})}
    )
    later = select_budget_episodes(recompute_findings(lake, strict, NOON, END))
    paged = next(
        episode for episode in later if episode.subject.condition is HealthCondition.AVAILABILITY_BURN
    )
    # 14.4 x 0.0005 x 60 are 0.43 minutes: the second third of one.
    assert paged.opened_at == NOON + 62 * MINUTE


def test_an_episode_lasts_from_its_first_finding_to_its_last() -> None:
    burns, outages = FindingSubject("orders", HealthCondition.LATENCY_BURN), outage(1, 2)
    findings = [
        build_finding(burns, HealthState.LATENCY_BURN, HealthState.HEALTHY, at(0), {}),
        *outages,
        build_finding(burns, HealthState.HEALTHY, HealthState.LATENCY_BURN, at(3), {}),
        build_finding(burns, HealthState.LATENCY_BURN, HealthState.HEALTHY, at(5), {}),
        build_finding(burns, HealthState.HEALTHY, HealthState.LATENCY_BURN, at(9), {}),
    ]
    first, second = select_budget_episodes(findings)
    assert (first.opened_at, first.cleared_at) == (at(3), at(5))
    assert (second.opened_at, second.cleared_at) == (at(9), None)
    assert list(compare_episodes([first], [second])) == [
        (BacktestVerdict.NEW, first),
        (BacktestVerdict.GONE, second),
    ]
