"""Budgets judged from the tables say what the watch said of the same records."""

from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from fleetgauge_core.contract import ProbeMinute
from fleetgauge_core.detection import (
    Budgets,
    Chain,
    Finding,
    Phase,
    Subject,
    count,
    explain,
)
from fleetgauge_core.detection.finding import finding
from fleetgauge_core.detection.goals import goal_of
from fleetgauge_core.fleet import Fleet
from fleetgauge_core.tables import HEALTH_EVENTS
from fleetgauge_pipelines.io.small_frames import dataframe
from fleetgauge_pipelines.jobs.backtest import findings_now, findings_then
from fleetgauge_pipelines.jobs.backtest_cli import Verdict, compared, of_budgets
from tests.probe_minutes import MINUTE, NOON
from tests.spark.lakes import opened, raw_frame
from tests.unit.core.detection.test_budgets import at, minutes, outage

#: A budget that goes with nobody named for it, and one that a named broker spends.
CLUSTERS = ("orders", "payments")
STORY = [*minutes(0, 60), *minutes(60, 70, failed=100), *minutes(70, 110)]
NAMED, CLEARED = outage(60.5, 71)
END = at(109)


def of_cluster(record: ProbeMinute, cluster_id: str) -> ProbeMinute:
    fields: dict[str, Any] = {name: getattr(record, name) for name in record.__slots__}
    return ProbeMinute(**fields | {"cluster_id": cluster_id, "run_id": f"{cluster_id}{record.run_id}"})


def of_payments(one: Finding) -> Finding:
    subject = Subject("payments", Chain.BROKER_DOWN, 2)
    return finding(subject, one.from_phase, one.to_phase, one.event.at, {})


def of_no_end() -> Finding:
    """A path's, without its ends."""
    return finding(Subject("orders", Chain.PATH), Phase.HEALTHY, Phase.PATH, NAMED.event.at, {})


def watched(fleet: Fleet, records: list[ProbeMinute], said: list[Finding]) -> list[Finding]:
    """As a watch hears it: a minute's records come 73 s after its start, findings when they are found."""
    goals = {one.id: goal_of(fleet, one) for one in fleet.clusters}
    heard: list[tuple[Any, int, ProbeMinute | Finding]] = [
        (one.minute + timedelta(seconds=73), 1, one) for one in records
    ]
    heard += [(one.event.at, 0, one) for one in said]
    budgets, found = Budgets(), list[Finding]()
    for _, _, one in sorted(heard, key=lambda each: each[:2]):
        if isinstance(one, Finding):
            budgets = explain(budgets, one)
        else:
            budgets, more = count(budgets, one, goals[one.cluster_id])
            found += more
    return found


def test_budgets_judged_from_the_tables_are_what_the_watch_said(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fleet = Fleet.model_validate({"clusters": [{"id": one, "bootstrap": "nobody:1"} for one in CLUSTERS]})
    records = [of_cluster(one, cluster_id) for cluster_id in CLUSTERS for one in STORY]
    said = [of_payments(NAMED), of_payments(CLEARED)]
    told = watched(fleet, records, said)
    lake, pipeline = opened(spark, tmp_path / "lake", fleet)
    values = [one.encode() for one in records]
    pipeline.process(raw_frame(spark, values), "records", NOON + timedelta(hours=3))
    known = [one.event for one in (*said, *told, of_no_end())]
    events = [tuple(asdict(one)[name] for name in HEALTH_EVENTS.names) for one in known]
    lake.append(HEALTH_EVENTS, dataframe(spark, events, HEALTH_EVENTS.ddl))

    now = findings_now(lake, fleet, NOON, END)
    assert "a health event was passed over" in caplog.text
    assert [one.event for one in now] == sorted(
        (one.event for one in told if one.event.at < END), key=lambda event: (event.at, event.event_id)
    )
    assert {one.subject.cluster_id for one in now} == {"orders"}
    pairs = list(compared(of_budgets(now), of_budgets(findings_then(lake, NOON, END))))
    assert pairs
    assert {verdict for verdict, _ in pairs} == {Verdict.SAME}

    strict = fleet.model_copy(
        update={"burn_alerts": fleet.burn_alerts.model_copy(update={"period_days": 30})}
    )
    later = of_budgets(findings_now(lake, strict, NOON, END))
    paged = next(one for one in later if one.subject.chain is Chain.AVAILABILITY_BURN)
    # 14.4 x 0.0005 x 60 are 0.43 minutes: the second third of one.
    assert paged.named_at == NOON + 62 * MINUTE


def test_an_episode_lasts_from_its_first_word_to_its_last() -> None:
    burns, outages = Subject("orders", Chain.LATENCY_BURN), outage(1, 2)
    found = [
        finding(burns, Phase.LATENCY_BURN, Phase.HEALTHY, at(0), {}),
        *outages,
        finding(burns, Phase.HEALTHY, Phase.LATENCY_BURN, at(3), {}),
        finding(burns, Phase.LATENCY_BURN, Phase.HEALTHY, at(5), {}),
        finding(burns, Phase.HEALTHY, Phase.LATENCY_BURN, at(9), {}),
    ]
    first, second = of_budgets(found)
    assert (first.named_at, first.cleared_at) == (at(3), at(5))
    assert (second.named_at, second.cleared_at) == (at(9), None)
    assert list(compared([first], [second])) == [(Verdict.NEW, first), (Verdict.GONE, second)]
