"""A simulated lake: its gold is the oracle's, its incidents are where the ledger says, its records agree."""

import json
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

from fleetgauge_core.contract import Leg
from fleetgauge_core.fleet import Fleet, load
from fleetgauge_core.tables import (
    BROKER_MINUTES,
    CLUSTER_MINUTES,
    CLUSTER_WEEKS,
    FLEET_WEEKS,
    HEALTH_EVENTS,
    Table,
)
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.jobs import simulate_cli
from fleetgauge_pipelines.jobs.backfill import records_in
from fleetgauge_pipelines.jobs.simulate_records import write_files
from fleetgauge_pipelines.simulation import Kind, SimulatedFleet
from fleetgauge_pipelines.simulation.causes import causes, reasons_of
from fleetgauge_pipelines.simulation.silver import cluster_minutes
from tests.oracle import week_rules
from tests.oracle.compare import differences
from tests.oracle.correction_rules import Corrected
from tests.oracle.settings import settings_of
from tests.spark.lakes import backfilled, delta, rows, versions
from tests.unit.pipelines.simulation.histories import rows as column_rows

#: The seed's fleet has an incident of every kind.
CLUSTERS, WEEKS, SEED = 3, 3, 6
#: A Wednesday: the first and the last of the calendar's weeks are cut.
END = datetime(2026, 11, 18, 6, tzinfo=UTC)
OBJECTIVE_US = 100_000
MINUTE, WEEK = timedelta(minutes=1), timedelta(days=7)
WISH = ["--clusters", "3", "--weeks", "3", "--seed", "6", "--end", "2026-11-18T06:00:00Z", "--json"]

Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Made:
    folder: Path
    answer: Row
    again: Result
    versions: tuple[dict[str, int], dict[str, int]]

    @property
    def lake(self) -> Path:
        return self.folder / "lake"

    @property
    def fleet(self) -> Fleet:
        return load(self.folder / "fleet.yaml")

    @property
    def incidents(self) -> list[Row]:
        found: list[Row] = json.loads((self.folder / "ledger.json").read_text())["incidents"]
        return found

    @cache  # noqa: B019 (as long as the module)
    def of_cluster(self, table: Table, cluster_id: str) -> list[Row]:
        return [row for row in self.rows(table) if row["cluster_id"] == cluster_id]

    @cache  # noqa: B019
    def rows(self, table: Table) -> list[Row]:
        return rows(self.lake, table)


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The command itself, but for the session: the suite's is not to be stopped."""
    folder = tmp_path_factory.mktemp("simulated")
    arguments = ["--to", str(folder), *WISH]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(simulate_cli, "writing", lambda at: nullcontext((spark, Lake(spark, at))))
        first = CliRunner().invoke(simulate_cli.simulate, arguments, catch_exceptions=False)
        before = versions(folder / "lake")
        again = CliRunner().invoke(simulate_cli.simulate, arguments, catch_exceptions=False)
    assert first.exit_code == 0, first.stderr
    return Made(folder, json.loads(first.stdout), again, (before, versions(folder / "lake")))


def _simulated(**more: Any) -> SimulatedFleet:
    minutes = WEEKS * 7 * 24 * 60
    return SimulatedFleet(SEED, CLUSTERS, END - minutes * MINUTE, minutes, **more)


def test_the_answer_counts_what_the_tables_hold(made: Made) -> None:
    counted = {
        "cluster_minutes": CLUSTER_MINUTES,
        "broker_minutes": BROKER_MINUTES,
        "cluster_weeks": CLUSTER_WEEKS,
        "fleet_weeks": FLEET_WEEKS,
    }
    held = {name: delta(made.lake, table).to_pyarrow_table().num_rows for name, table in counted.items()}
    brokers = sum(len(profile.brokers) for profile in _simulated().profiles)
    given = {"clusters": CLUSTERS, "weeks": WEEKS, "brokers": brokers, "incidents": len(made.incidents)}
    assert made.answer.items() >= (held | given).items()
    assert held["cluster_minutes"] == CLUSTERS * WEEKS * 7 * 24 * 60
    assert held["cluster_weeks"] == CLUSTERS * (WEEKS + 1)
    assert made.answer["config"] == str(made.folder / "fleet.yaml")


def test_making_it_again_changes_nothing_and_answers_the_same(made: Made) -> None:
    assert json.loads(made.again.stdout) == made.answer
    assert "nothing to do" in made.again.stderr
    assert made.versions[0] == made.versions[1]


def test_gold_is_what_the_oracle_makes_of_silver(made: Made) -> None:
    settings = settings_of(made.fleet)
    weeks = [
        week
        for cluster in settings.clusters
        for minutes in [made.of_cluster(CLUSTER_MINUTES, cluster.cluster_id)]
        for week in week_rules.cluster_weeks(minutes, _as_they_are(minutes), cluster, settings, END)
    ]
    _equal(CLUSTER_WEEKS, weeks, made.rows(CLUSTER_WEEKS))
    _equal(FLEET_WEEKS, week_rules.fleet_weeks(weeks, settings, END), made.rows(FLEET_WEEKS))


def _as_they_are(minutes: list[Row]) -> list[Corrected]:
    """Nobody has corrected anything."""
    return [Corrected(row["minute"], row, frozenset()) for row in minutes]


def _equal(table: Table, wanted: list[Row], found: list[Row]) -> None:
    assert wanted
    assert [str(one) for one in differences(table, wanted, found)][:20] == []


def test_silver_is_the_models_own(made: Made) -> None:
    simulated = _simulated()
    for cluster, profile in enumerate(simulated.profiles):
        found = {row["minute"]: row for row in made.of_cluster(CLUSTER_MINUTES, profile.cluster_id)}
        part, reasons = simulated.part(cluster, 1), reasons_of(list(simulated.incidents(cluster)))
        columns = {**cluster_minutes(part), "cause": causes(part, OBJECTIVE_US, reasons)}
        at = [simulated.start + WEEK + n * MINUTE for n in range(7 * 24 * 60)]
        for name in CLUSTER_MINUTES.content:
            values: Any = columns[name]
            wanted = values.tolist() if hasattr(values, "tolist") else [values] * len(at)
            assert [found[minute][name] for minute in at] == wanted, name


def test_every_planted_incident_is_where_the_ledger_says(made: Made) -> None:
    assert {entry["kind"] for entry in made.incidents} == set(Kind)
    objective_us = OBJECTIVE_US
    for entry in made.incidents:
        start, end = (datetime.fromisoformat(entry[name]) for name in ("start", "end"))
        minutes = made.of_cluster(CLUSTER_MINUTES, entry["cluster_id"])
        during = [row for row in minutes if start <= row["minute"] < end]
        bad = [row for row in during if (row["latency_p99_censored_us"] or 0) > objective_us]
        silent = [row for row in during if row["brokers_measured"] == 0]
        assert (len(bad), len(silent)) == (entry["bad_minutes"], entry["unmeasured_minutes"])
        assert all(row["latency_p99_censored_us"] >= entry["latency_p99_censored_us_at_least"] for row in bad)


def test_the_broker_to_blame_stands_out_on_its_leader_leg(made: Made) -> None:
    for entry in made.incidents:
        start, end = (datetime.fromisoformat(entry[name]) for name in ("start", "end"))
        legs = [
            row
            for row in made.of_cluster(BROKER_MINUTES, entry["cluster_id"])
            if start <= row["minute"] < end and row["leg"] == Leg.LEADER
        ]
        assert legs, entry["id"]
        over = {row["broker_id"] for row in legs if (row["latency_p99_censored_us"] or 0) > 100_000}
        assert over == set(entry["brokers"]), entry["id"]


def test_weeks_with_incidents_are_worse_by_just_these(made: Made) -> None:
    calm = _simulated(incidents_per_week=0.0)
    for cluster, profile in enumerate(calm.profiles):
        entries = [entry for entry in made.incidents if entry["cluster_id"] == profile.cluster_id]
        silent = _minutes_of([entry for entry in entries if entry["unmeasured_minutes"]])
        planted = _minutes_of([entry for entry in entries if entry["bad_minutes"]])
        plain = _bad_minutes(calm, cluster)
        for week in made.of_cluster(CLUSTER_WEEKS, profile.cluster_id):
            start = datetime.combine(week["week"], time(), UTC)
            without, bad, gone = (
                sum(start <= minute < start + WEEK for minute in minutes)
                for minutes in (plain, (plain | planted) - silent, silent)
            )
            assert week["bad_minutes"] == bad
            assert week["minutes_expected"] - week["minutes_measured"] == gone
            assert (bad + gone > without) == any(start <= at < start + WEEK for at in planted | silent)


def _minutes_of(entries: list[Row]) -> set[datetime]:
    spans = [(datetime.fromisoformat(e["start"]), datetime.fromisoformat(e["end"])) for e in entries]
    return {start + n * MINUTE for start, end in spans for n in range((end - start) // MINUTE)}


def _bad_minutes(simulated: SimulatedFleet, cluster: int) -> set[datetime]:
    return {
        row["minute"]
        for week in range(simulated.weeks)
        for row in column_rows(cluster_minutes(simulated.part(cluster, week)))
        if row["latency_p99_censored_us"] > 100_000
    }


def test_the_newest_two_days_have_every_broker_and_leg(made: Made) -> None:
    newest = [row for row in made.rows(BROKER_MINUTES) if row["minute"] >= END - timedelta(days=2)]
    assert len(newest) == made.answer["brokers"] * len(Leg) * 2 * 24 * 60
    assert max(row["minute"] for row in newest) == END - MINUTE


def test_the_causes_are_those_that_the_watch_named(made: Made) -> None:
    weeks = [week for week in made.rows(CLUSTER_WEEKS) if week["causes"]]
    assert {cause for week in weeks for cause, _ in week["causes"]} == {"BROKER_DOWN", "unknown"}
    assert all(sum(n for _, n in week["causes"]) == week["bad_minutes"] for week in weeks)


def test_hung_brokers_were_named_and_cleared(made: Made) -> None:
    hung = {(e["cluster_id"], e["brokers"][0]) for e in made.incidents if e["kind"] == Kind.BROKER_HUNG}
    events = made.rows(HEALTH_EVENTS)
    for state in ("BROKER_DOWN", "HEALTHY"):
        assert {(one["cluster_id"], one["broker_id"]) for one in events if one["to_state"] == state} == hung


def test_records_in_files_make_the_same_silver_through_the_real_job(
    spark: SparkSession, tmp_path: Path
) -> None:
    simulated = SimulatedFleet(7, 2, END - 150 * MINUTE, 150, incidents_per_week=150)
    fleet = Fleet.model_validate(simulated.document())
    written = write_files(simulated, tmp_path / "records", lambda *_: None)

    lake = Lake(spark, str(tmp_path / "lake"))
    [outcome] = backfilled(spark, lake, fleet, records_in(tmp_path / "records"), END).outcomes

    assert (outcome.ingested.stored, outcome.ingested.quarantined) == (written, 0)
    assert all(verdict.success for verdict in outcome.verdicts), outcome.verdicts
    parts = [simulated.part(cluster, 0) for cluster in range(2)]
    minutes = [
        row
        for part in parts
        for row in column_rows({**cluster_minutes(part), "cause": causes(part, OBJECTIVE_US, ())})
    ]
    assert {row["brokers_measured"] for row in minutes} > {0}, "an agent was gone"
    _equal(CLUSTER_MINUTES, minutes, rows(tmp_path / "lake", CLUSTER_MINUTES))
