"""`fleetgauge slo --without`: equal to an independent recomputation from the oracle's minutes."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from fleetgauge_core import tables
from fleetgauge_core.fleet import Fleet
from fleetgauge_core.lake.delta_table import open_table
from fleetgauge_core.tables import ALL_TABLES
from fleetgauge_dashboards.terminal.slo import slo
from tests.browser.lake import put
from tests.oracle.cause_rules import ActivePeriod, list_changes, list_episodes
from tests.oracle.correction_rules import CorrectedMinute, apply_corrections, find_occurrences
from tests.oracle.minute_rules import Row, compute_broker_minutes, drop_duplicates
from tests.oracle.operations import Operations
from tests.oracle.oracle import drop_lone_beginnings, evaluate, read_settings
from tests.oracle.random_fleets import RandomLake, random_lake
from tests.oracle.settings import ClusterSettings, Settings
from tests.oracle.week_rules import compute_cluster_weeks, compute_fleet_weeks, find_week

MINUTE = timedelta(minutes=1)
#: What a week's levels are, beside what tells the week and how it was computed.
LEVELS = (
    "latency_p99_us",
    "latency_p99_censored_us",
    "availability_p99",
    "availability_ratio",
    "bad_minutes",
    "latency_budget_minutes",
    "latency_budget_left_minutes",
    "availability_budget_minutes",
    "availability_spent_minutes",
    "minutes_measured",
    "minutes_expected",
)


@dataclass(frozen=True)
class ExampleLake:
    """A lake with what the oracle makes of a random fleet; its tables are never written by the product."""

    folder: Path
    settings: Settings
    lake: RandomLake

    @property
    def config(self) -> Path:
        return self.folder / "fleet.yaml"

    @property
    def clock(self) -> datetime:
        return self.lake.deliveries[-1].clock

    @cached_property
    def records(self) -> list[Row]:
        records = [dict(record) for delivery in self.lake.deliveries for record in delivery.records]
        return drop_lone_beginnings(records, self.settings, self.clock)

    @cached_property
    def week(self) -> date:
        """The week with most bad minutes."""
        bad = Counter(
            find_week(row["minute"], self.settings)
            for rows in self.minutes.values()
            for row in rows
            if row["cause"]
        )
        return bad.most_common(1)[0][0]

    @cached_property
    def minutes(self) -> dict[str, list[Row]]:
        """The cluster-minutes with their causes, by cluster."""
        tables_ = evaluate(self.records, self.settings, self.clock, self.lake.operations)
        by_cluster: dict[str, list[Row]] = {}
        for row in tables_.cluster_minutes:
            by_cluster.setdefault(row["cluster_id"], []).append(row)
        return by_cluster

    def recompute(self, is_left_out: Callable[[Row], bool]) -> dict[str, Row]:
        """Return each cluster's week without some minutes."""
        weeks = []
        for cluster in self.settings.clusters:
            minutes = self.minutes.get(cluster.cluster_id, [])
            gone = {row["minute"] for row in minutes if is_left_out(row)}
            corrected = self._corrected_without(cluster, gone)
            weeks += compute_cluster_weeks(minutes, corrected, cluster, self.settings, self.clock)
        return {week["cluster_id"]: week for week in weeks if week["week"] == self.week}

    def _corrected_without(self, cluster: ClusterSettings, gone: set[datetime]) -> list[CorrectedMinute]:
        return [
            corrected for corrected in self._corrected[cluster.cluster_id] if corrected.minute not in gone
        ]

    @cached_property
    def _corrected(self) -> dict[str, list[CorrectedMinute]]:
        corrected = {}
        for cluster in self.settings.clusters:
            records = [record for record in self.records if record["cluster_id"] == cluster.cluster_id]
            brokers = compute_broker_minutes(drop_duplicates(records), cluster, self.settings.agent_late_us)
            times = [row["minute"] for row in self.minutes.get(cluster.cluster_id, [])]
            exclusions = find_occurrences(self.lake.operations.corrections, cluster, self.settings, times)
            corrected[cluster.cluster_id] = apply_corrections(brokers, exclusions)
        return corrected


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> ExampleLake:
    folder, lake = tmp_path_factory.mktemp("example"), random_lake(3, fleets=30)
    document = lake.document | {"lake": str(folder / "lake")}
    (folder / "fleet.yaml").write_text(yaml.safe_dump(document))
    example = ExampleLake(folder, read_settings(Fleet.model_validate(document)), lake)
    computed = evaluate(example.records, example.settings, example.clock, lake.operations)
    rows: dict[Any, Sequence[Mapping[str, Any]]] = {
        tables.BROKER_MINUTES: computed.broker_minutes,
        tables.CLUSTER_MINUTES: computed.cluster_minutes,
        tables.CLUSTER_WEEKS: computed.cluster_weeks,
        tables.FLEET_WEEKS: computed.fleet_weeks,
        tables.CORRECTIONS: lake.operations.corrections,
        tables.ACTIONS: lake.operations.actions,
        tables.HEALTH_EVENTS: lake.operations.health_events,
        tables.CHANGES: lake.operations.changes,
    }
    for table, content in rows.items():
        put(folder / "lake", table, [dict(row) for row in content])
    return example


def run(example: ExampleLake, *arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(
        slo, [str(example.week), "--config", str(example.config), "--json", *arguments]
    )
    assert result.exit_code == 0, result.output
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def levels(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    return {row["cluster_id"]: {name: row[name] for name in LEVELS} for row in rows}


def assert_equal(example: ExampleLake, answer: Mapping[str, Any], is_left_out: Callable[[Row], bool]) -> None:
    """Assert that the answer is the oracle's for the same minutes left out, to a rounded sum."""
    expected = example.recompute(is_left_out)
    actual = levels(answer["clusters"])
    assert actual.keys() == levels(expected.values()).keys()
    for cluster_id, values in levels(expected.values()).items():
        # A sum of doubles depends on the order of its terms.
        spent = {
            name: each.pop("availability_spent_minutes")
            for name, each in (("is", actual[cluster_id]), ("ought", values))
        }
        assert actual[cluster_id] == values, cluster_id
        assert spent["is"] == pytest.approx(spent["ought"], rel=1e-12)
    fleet = compute_fleet_weeks(expected.values(), example.settings, example.clock)
    for row in answer["fleet"]:
        (wanted,) = (
            each
            for each in fleet
            if (each["metric"], each["segment"], each["segment_value"]) == (row["metric"], "fleet", "")
        )
        for name in ("median", "p90", "p99", "clusters", "clusters_excluded"):
            assert row[name] == wanted[name], (row["metric"], name)


def test_without_a_cause_the_week_is_that_of_its_other_minutes(example: ExampleLake) -> None:
    before = {name: delta.version() for name, delta in _open_all(example).items()}
    causes = {row["cause"] for rows in example.minutes.values() for row in rows} - {None}
    assert causes >= {"roll", "maintenance", "reassignment", "throttle", "change", "DEGRADED", "unknown"}
    left_out = {}
    for cause in sorted(causes):
        answer = run(example, "--without", cause)
        assert answer["without"] == cause
        assert_equal(example, answer, lambda row, cause=cause: row["cause"] == cause)
        left_out[cause] = sum(answer["left_out"].values())
    # What is excluded by a correction does not count, and so is not left out either.
    assert sum(left_out.values()) > 50
    assert {name: delta.version() for name, delta in _open_all(example).items()} == before


def _open_all(example: ExampleLake) -> dict[str, Any]:
    opened = {table.path: open_table(str(example.folder / "lake"), table) for table in ALL_TABLES}
    return {path: delta for path, delta in opened.items() if delta is not None}


def test_with_nothing_left_out_the_week_is_the_stored_one(example: ExampleLake) -> None:
    plain = run(example)
    assert "left_out" not in plain
    answer = run(example, "--without", "CLUSTER_DOWN")
    untouched = set(levels(answer["clusters"])) - set(answer["left_out"])
    assert untouched
    assert {name: levels(answer["clusters"])[name] for name in untouched} == {
        name: levels(plain["clusters"])[name] for name in untouched
    }


def test_without_a_change_the_minutes_that_it_explains_are_left_out(example: ExampleLake) -> None:
    causes = {"reassignment": "reassignment", "throttle": "throttle"}
    compared = 0
    for change_id in sorted({row["change_id"] for row in example.lake.operations.changes}):
        records = [row for row in example.lake.operations.changes if row["change_id"] == change_id]
        kind = records[0]["kind"]
        if kind in ("setting_changed", "broker_restarted") or compared > 4:
            continue
        cause = causes.get(kind, "change")
        periods = {
            cluster.cluster_id: list_changes(Operations(changes=tuple(records)), cluster)
            for cluster in example.settings.clusters
        }

        def is_left_out(
            row: Row, cause: str = cause, periods: Mapping[str, list[ActivePeriod]] = periods
        ) -> bool:
            return row["cause"] == cause and any(
                period.starts < row["minute"] + MINUTE
                and (period.ends is None or period.ends > row["minute"])
                for period in periods[row["cluster_id"]]
            )

        answer = run(example, "--without", change_id)
        assert_equal(example, answer, is_left_out)
        compared += bool(answer["left_out"])
    assert compared > 4


def test_without_a_roll_its_own_minutes_and_the_findings_that_it_produces_are_left_out(
    example: ExampleLake,
) -> None:
    compared, clusters = 0, {cluster.cluster_id: cluster for cluster in example.settings.clusters}
    for row in example.lake.operations.changes:
        if row["kind"] != "broker_restarted" or json.loads(row["evidence"])["orderly"] is not True:
            continue
        alone = Operations(changes=(row,), health_events=example.lake.operations.health_events)
        cluster = clusters[row["cluster_id"]]
        periods = [
            period
            for period in (*list_changes(alone, cluster), *list_episodes(alone, cluster))
            if period.kind in ("roll", "effects of a roll")
        ]

        def is_left_out(minute: Row, row: Row = row, periods: Sequence[ActivePeriod] = periods) -> bool:
            of_roll = minute["cluster_id"] == row["cluster_id"] and minute["cause"] == "roll"
            return of_roll and any(
                period.starts < minute["minute"] + MINUTE
                and (period.ends is None or period.ends > minute["minute"])
                for period in periods
            )

        if periods:
            answer = run(example, "--without", row["change_id"])
            assert_equal(example, answer, is_left_out)
            compared += bool(answer["left_out"])
        else:
            # It was the remedy of a fault.
            result = CliRunner().invoke(
                slo, [str(example.week), "--config", str(example.config), "--without", row["change_id"]]
            )
            assert result.exit_code == 2
    assert compared > 1


def test_without_a_finding_or_an_action_its_minutes_are_left_out(example: ExampleLake) -> None:
    operations = example.lake.operations
    openings = [row for row in operations.health_events if row["to_state"] == "BROKER_DOWN"]
    left_out = [run(example, "--without", row["event_id"])["left_out"] for row in openings]
    assert any(left_out)
    for row, counts in zip(openings, left_out, strict=True):
        assert set(counts) <= {row["cluster_id"]}
        assert counts == run(example, "--without", row["fingerprint"])["left_out"]
    actions = [row for row in operations.actions if row["kind"] in ("roll", "reassignment", "throttle")]
    assert any(run(example, "--without", row["action_id"])["left_out"] for row in actions)


@pytest.mark.parametrize("name", ["nothing-of-the-kind", "change-without", ""])
def test_what_explains_no_minute_is_said(example: ExampleLake, name: str) -> None:
    result = CliRunner().invoke(slo, ["--config", str(example.config), "--without", name])
    assert result.exit_code == 2
    assert f"--without {name}: explains no minute; give a cause (maintenance, roll, " in result.stderr


def test_the_text_says_what_is_left_out(example: ExampleLake) -> None:
    result = CliRunner().invoke(
        slo, [str(example.week), "--config", str(example.config), "--without", "roll"]
    )
    assert "as it would have been without these minutes: fleet-" in result.output
