"""A simulated lake: its gold matches the oracle, its incidents the ledger, and its records its silver."""

import json
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, time, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

from fleetgauge_core.contract import Leg
from fleetgauge_core.fleet import Fleet, load_fleet
from fleetgauge_core.tables import (
    BROKER_MINUTES,
    CHANGE_COSTS,
    CHANGES,
    CLUSTER_MINUTES,
    CLUSTER_WEEKS,
    FLEET_WEEKS,
    HEALTH_EVENTS,
    QUALITY,
    Table,
)
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.jobs import simulate_cli, simulate_command
from fleetgauge_pipelines.jobs.backfill import open_record_folder
from fleetgauge_pipelines.jobs.changes import add_changes, read_change_file
from fleetgauge_pipelines.jobs.simulate_records import write_record_files
from fleetgauge_pipelines.simulation import IncidentKind, SimulatedFleet
from fleetgauge_pipelines.simulation.causes import find_cause_intervals, find_causes
from fleetgauge_pipelines.simulation.events import list_health_events
from fleetgauge_pipelines.simulation.silver import make_cluster_minutes
from tests.oracle import week_rules
from tests.oracle.compare import find_differences
from tests.oracle.correction_rules import CorrectedMinute
from tests.oracle.settings import read_settings
from tests.spark.lakes import backfilled, delta, rows, versions
from tests.unit.pipelines.simulation.histories import rows as column_rows

#: The seed's fleet has an incident of every kind.
CLUSTERS, WEEKS, SEED = 3, 3, 32
#: A Wednesday: the first and the last of the calendar's weeks are cut.
END = datetime(2026, 11, 18, 6, tzinfo=UTC)
OBJECTIVE_US = 100_000
MINUTE, WEEK = timedelta(minutes=1), timedelta(days=7)
WISH = ["--clusters", "3", "--weeks", "3", "--seed", "32", "--end", "2026-11-18T06:00:00Z", "--json"]

Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class SimulatedLake:
    folder: Path
    answer: Row
    again: Result
    versions: tuple[dict[str, int], dict[str, int]]

    @property
    def lake(self) -> Path:
        return self.folder / "lake"

    @property
    def fleet(self) -> Fleet:
        return load_fleet(self.folder / "fleet.yaml")

    @property
    def incidents(self) -> list[Row]:
        incidents_: list[Row] = json.loads((self.folder / "ledger.json").read_text())["incidents"]
        return incidents_

    @cache  # noqa: B019 (as long as the module)
    def of_cluster(self, table: Table, cluster_id: str) -> list[Row]:
        return [row for row in self.rows(table) if row["cluster_id"] == cluster_id]

    @cache  # noqa: B019
    def rows(self, table: Table) -> list[Row]:
        return rows(self.lake, table)


@pytest.fixture(scope="module")
def simulated_lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SimulatedLake:
    """Run the command with the suite's session, which it must not stop."""
    folder = tmp_path_factory.mktemp("simulated")
    arguments = ["--to", str(folder), *WISH]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            simulate_command, "open_lake_for_pipeline", lambda at: nullcontext((spark, Lake(spark, at)))
        )
        first = CliRunner().invoke(simulate_cli.simulate, arguments, catch_exceptions=False)
        before = versions(folder / "lake")
        again = CliRunner().invoke(simulate_cli.simulate, arguments, catch_exceptions=False)
    assert first.exit_code == 0, first.stderr
    return SimulatedLake(folder, json.loads(first.stdout), again, (before, versions(folder / "lake")))


def _simulated(**more: Any) -> SimulatedFleet:
    minutes = WEEKS * 7 * 24 * 60
    return SimulatedFleet(SEED, CLUSTERS, END - minutes * MINUTE, minutes, **more)


def test_the_printed_counts_match_the_tables(simulated_lake: SimulatedLake) -> None:
    counted = {
        "cluster_minutes": CLUSTER_MINUTES,
        "broker_minutes": BROKER_MINUTES,
        "cluster_weeks": CLUSTER_WEEKS,
        "fleet_weeks": FLEET_WEEKS,
    }
    stored_counts = {
        name: delta(simulated_lake.lake, table).to_pyarrow_table().num_rows for name, table in counted.items()
    }
    brokers = sum(len(profile.brokers) for profile in _simulated().profiles)
    given = {
        "clusters": CLUSTERS,
        "weeks": WEEKS,
        "brokers": brokers,
        "incidents": len(simulated_lake.incidents),
    }
    assert simulated_lake.answer.items() >= (stored_counts | given).items()
    assert stored_counts["cluster_minutes"] == CLUSTERS * WEEKS * 7 * 24 * 60
    assert stored_counts["cluster_weeks"] == CLUSTERS * (WEEKS + 1)
    assert simulated_lake.answer["config"] == str(simulated_lake.folder / "fleet.yaml")


def test_a_second_run_changes_nothing_and_prints_the_same(simulated_lake: SimulatedLake) -> None:
    assert json.loads(simulated_lake.again.stdout) == simulated_lake.answer
    assert "nothing to do" in simulated_lake.again.stderr
    assert simulated_lake.versions[0] == simulated_lake.versions[1]


def test_gold_matches_the_oracle(simulated_lake: SimulatedLake) -> None:
    settings = read_settings(simulated_lake.fleet)
    weeks = [
        week
        for cluster in settings.clusters
        for minutes in [simulated_lake.of_cluster(CLUSTER_MINUTES, cluster.cluster_id)]
        for week in week_rules.compute_cluster_weeks(minutes, _as_they_are(minutes), cluster, settings, END)
    ]
    _equal(CLUSTER_WEEKS, weeks, simulated_lake.rows(CLUSTER_WEEKS))
    _equal(
        FLEET_WEEKS, week_rules.compute_fleet_weeks(weeks, settings, END), simulated_lake.rows(FLEET_WEEKS)
    )


def _as_they_are(minutes: list[Row]) -> list[CorrectedMinute]:
    """Return minutes without corrections."""
    return [CorrectedMinute(row["minute"], row, frozenset()) for row in minutes]


def _equal(table: Table, wanted: list[Row], actual: list[Row]) -> None:
    assert wanted
    assert [str(difference) for difference in find_differences(table, wanted, actual)][:20] == []


def test_silver_matches_the_model(simulated_lake: SimulatedLake) -> None:
    simulated = _simulated()
    for cluster, profile in enumerate(simulated.profiles):
        row_by_minute = {
            row["minute"]: row for row in simulated_lake.of_cluster(CLUSTER_MINUTES, profile.cluster_id)
        }
        part = simulated.simulate_week(cluster, 1)
        reasons = find_cause_intervals(simulated, cluster, list_health_events(simulated, cluster))
        columns = {**make_cluster_minutes(part), "cause": find_causes(part, OBJECTIVE_US, reasons)}
        at = [simulated.start + WEEK + n * MINUTE for n in range(7 * 24 * 60)]
        for name in CLUSTER_MINUTES.compared_columns:
            values: Any = columns[name]
            wanted = values.tolist() if hasattr(values, "tolist") else [values] * len(at)
            assert [row_by_minute[minute][name] for minute in at] == wanted, name


def test_every_incident_is_where_the_ledger_lists_it(simulated_lake: SimulatedLake) -> None:
    assert {entry["kind"] for entry in simulated_lake.incidents} == set(IncidentKind)
    objective_us = OBJECTIVE_US
    for entry in simulated_lake.incidents:
        start, end = (datetime.fromisoformat(entry[name]) for name in ("start", "end"))
        minutes = simulated_lake.of_cluster(CLUSTER_MINUTES, entry["cluster_id"])
        during = [row for row in minutes if start <= row["minute"] < end]
        bad = [row for row in during if (row["latency_p99_censored_us"] or 0) > objective_us]
        silent = [row for row in during if row["brokers_measured"] == 0]
        assert (len(bad), len(silent)) == (entry["bad_minutes"], entry["unmeasured_minutes"])
        assert all(row["latency_p99_censored_us"] >= entry["latency_p99_censored_us_at_least"] for row in bad)


def test_the_faulty_broker_is_slow_on_its_leader_leg(simulated_lake: SimulatedLake) -> None:
    for entry in simulated_lake.incidents:
        start, end = (datetime.fromisoformat(entry[name]) for name in ("start", "end"))
        legs = [
            row
            for row in simulated_lake.of_cluster(BROKER_MINUTES, entry["cluster_id"])
            if start <= row["minute"] < end and row["leg"] == Leg.LEADER
        ]
        assert legs, entry["id"]
        over = {row["broker_id"] for row in legs if (row["latency_p99_censored_us"] or 0) > 100_000}
        assert over == set(entry["brokers"]), entry["id"]


def test_incidents_account_for_all_additional_bad_minutes(simulated_lake: SimulatedLake) -> None:
    calm = _simulated(incidents_per_week=0.0)
    for cluster, profile in enumerate(calm.profiles):
        entries = [entry for entry in simulated_lake.incidents if entry["cluster_id"] == profile.cluster_id]
        silent = _minutes_of([entry for entry in entries if entry["unmeasured_minutes"]])
        planted = _minutes_of([entry for entry in entries if entry["bad_minutes"]])
        plain = _bad_minutes(calm, cluster)
        for week in simulated_lake.of_cluster(CLUSTER_WEEKS, profile.cluster_id):
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
        for row in column_rows(make_cluster_minutes(simulated.simulate_week(cluster, week)))
        if row["latency_p99_censored_us"] > 100_000
    }


def test_the_newest_two_days_have_all_broker_minutes(simulated_lake: SimulatedLake) -> None:
    newest = [row for row in simulated_lake.rows(BROKER_MINUTES) if row["minute"] >= END - timedelta(days=2)]
    assert len(newest) == simulated_lake.answer["brokers"] * len(Leg) * 2 * 24 * 60
    assert max(row["minute"] for row in newest) == END - MINUTE


def test_the_causes_are_those_of_the_ledger(simulated_lake: SimulatedLake) -> None:
    weeks = [week for week in simulated_lake.rows(CLUSTER_WEEKS) if week["causes"]]
    planted = {entry["cause"] for entry in simulated_lake.incidents} - {None}
    assert planted >= {"BROKER_DOWN", "DEGRADED", "roll", "reassignment", "throttle", "change"}
    assert {cause for week in weeks for cause, _ in week["causes"]} == planted | {"unknown"}
    assert all(sum(n for _, n in week["causes"]) == week["bad_minutes"] for week in weeks)
    for entry in simulated_lake.incidents:
        start, end = (datetime.fromisoformat(entry[name]) for name in ("start", "end"))
        minutes = simulated_lake.of_cluster(CLUSTER_MINUTES, entry["cluster_id"])
        causes = {row["cause"] for row in minutes if start <= row["minute"] < end}
        assert causes == {entry["cause"]}, entry


def test_each_change_has_a_cost_that_agrees_with_the_ledger(simulated_lake: SimulatedLake) -> None:
    ledger = json.loads((simulated_lake.folder / "ledger.json").read_text())
    minutes = {entry["id"]: entry["bad_minutes"] for entry in ledger["incidents"]}
    lasting = [
        change
        for change in ledger["changes"]
        if change["kind"] in ("reassignment", "throttle") and change["end"]
    ]
    costs = {row["change_id"]: row for row in simulated_lake.rows(CHANGE_COSTS)}
    # Of the first two weeks there are too few to compare with.
    compared = [change for change in lasting if costs[change["id"]]["bad_minutes"] is not None]
    assert len(compared) > 1
    for change in compared:
        row, planted = costs[change["id"]], minutes.get(change["incident"], 0)
        assert row["cluster_id"] == change["cluster_id"]
        assert abs(row["bad_minutes"] - planted) <= 2, change
        assert (row["bad_minutes_verdict"] == "cost") == (planted > 0), row


def test_the_changes_are_in_the_lake_and_in_a_file_for_a_backfill(simulated_lake: SimulatedLake) -> None:
    stored = {row["event_id"]: row for row in simulated_lake.rows(CHANGES)}
    assert stored == {record.event_id: asdict(record) for record in _simulated().change_records()}
    listed = read_change_file(simulated_lake.folder / "changes.json", simulated_lake.fleet, END)
    assert {record.change_id for record in listed} == {row["change_id"] for row in stored.values()}
    assert len(listed) == len(stored)


def test_faulty_brokers_have_findings_that_are_cleared(simulated_lake: SimulatedLake) -> None:
    faulty = {
        kind: {(e["cluster_id"], e["brokers"][0]) for e in simulated_lake.incidents if e["kind"] == kind}
        for kind in (IncidentKind.BROKER_HUNG, IncidentKind.BROKER_SLOW)
    }
    hung, slow = faulty.values()
    events = simulated_lake.rows(HEALTH_EVENTS)
    for state, expected in (("BROKER_DOWN", hung), ("DEGRADED", slow), ("HEALTHY", hung | slow)):
        of_state = {(row["cluster_id"], row["broker_id"]) for row in events if row["to_state"] == state}
        assert of_state == expected


def test_a_history_from_records_and_a_file_of_changes_has_the_causes_of_the_ledger(
    spark: SparkSession, tmp_path: Path
) -> None:
    simulated = SimulatedFleet(253, 2, END - 600 * MINUTE, 600, incidents_per_week=150)
    fleet = Fleet.model_validate(simulated.fleet_document())
    write_record_files(simulated, tmp_path / "records", lambda *_: None)
    lake, records = Lake(spark, str(tmp_path / "lake")), open_record_folder(tmp_path / "records")
    backfilled(spark, lake, fleet, records, END)
    entries = [
        entry
        for entry in simulated.ledger()["incidents"]
        if entry["cause"] in ("roll", "reassignment", "throttle", "change")
    ]
    assert {entry["cause"] for entry in entries} == {"roll", "reassignment", "throttle", "change"}
    assert _find_causes(tmp_path / "lake", entries) == {"unknown"}
    # Weeks later, when the week is closed, somebody gives the changes.
    later, changes = END + 2 * WEEK, tuple(simulated.change_records())
    # An earlier run was killed when it had stored them.
    add_changes(lake, changes)
    added = backfilled(spark, lake, fleet, records, later, changes=changes)
    assert (len(added.batches), added.gold_rows_changed > 0) == (0, True)
    for entry in entries:
        assert _find_causes(tmp_path / "lake", [entry]) == {entry["cause"]}, entry
    costs = {row["change_id"]: row for row in rows(tmp_path / "lake", CHANGE_COSTS)}
    lasting = [change for change in changes if change.kind in ("reassignment", "throttle") and change.ends]
    # There are no weeks to compare with; but what was measured is known.
    assert {change.change_id for change in lasting} <= costs.keys()
    assert all(row["minutes_measured"] > 0 for row in costs.values())
    before = versions(tmp_path / "lake")
    backfilled(spark, lake, fleet, records, later, changes=changes)
    after = versions(tmp_path / "lake")
    assert {name for name in after if after[name] != before[name]} <= {QUALITY.path}


def _find_causes(lake: Path, entries: list[Row]) -> set[str | None]:
    minutes = rows(lake, CLUSTER_MINUTES)
    return {
        row["cause"]
        for entry in entries
        for row in minutes
        if row["cluster_id"] == entry["cluster_id"]
        and datetime.fromisoformat(entry["start"]) <= row["minute"] < datetime.fromisoformat(entry["end"])
    }


def test_simulated_records_give_the_same_silver_through_the_real_job(
    spark: SparkSession, tmp_path: Path
) -> None:
    simulated = SimulatedFleet(7, 2, END - 150 * MINUTE, 150, incidents_per_week=150)
    fleet = Fleet.model_validate(simulated.fleet_document())
    written = write_record_files(simulated, tmp_path / "records", lambda *_: None)

    lake = Lake(spark, str(tmp_path / "lake"))
    [outcome] = backfilled(spark, lake, fleet, open_record_folder(tmp_path / "records"), END).batches

    assert (outcome.ingested.stored, outcome.ingested.quarantined) == (written, 0)
    assert all(verdict.success for verdict in outcome.verdicts), outcome.verdicts
    parts = [simulated.simulate_week(cluster, 0) for cluster in range(2)]
    minutes = [
        row
        for part in parts
        for row in column_rows({**make_cluster_minutes(part), "cause": find_causes(part, OBJECTIVE_US, ())})
    ]
    assert {row["brokers_measured"] for row in minutes} > {0}, "an agent was gone"
    _equal(CLUSTER_MINUTES, minutes, rows(tmp_path / "lake", CLUSTER_MINUTES))
