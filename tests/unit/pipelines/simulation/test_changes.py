"""Simulated changes: what would have been recorded of them, and the causes that follow."""

from collections import Counter
from itertools import pairwise

import numpy as np

from fleetgauge_core.contract import ClusterChange
from fleetgauge_pipelines.simulation import SimulatedFleet
from fleetgauge_pipelines.simulation.causes import find_cause_intervals, find_causes
from fleetgauge_pipelines.simulation.events import list_health_events
from tests.unit.pipelines.simulation.histories import WEEK, history

CLUSTERS, WEEKS = 15, 8


def test_each_bad_minute_of_an_incident_has_the_cause_of_the_ledger_and_few_others_have_one() -> None:
    fleet = history(clusters=CLUSTERS, minutes=WEEKS * WEEK)
    causes = _name_causes(fleet)
    planted = {
        (entry["cluster_id"], int(first) + minute): entry["cause"]
        for entry in fleet.ledger()["incidents"]
        if entry["cause"] is not None
        for first in [np.datetime64(entry["start"][:16], "m").astype(int)]
        for minute in range(entry["bad_minutes"])
    }
    assert {minute: causes[minute] for minute in planted} == planted
    others = Counter(cause for minute, cause in causes.items() if minute not in planted)
    # A minute that was bad by chance may lie within a change.
    assert sum(others.values()) - others["unknown"] <= 0.02 * sum(others.values())
    unknown = sum(cause == "unknown" for cause in causes.values()) / len(causes)
    assert 0 < unknown < 0.1
    assert {"roll", "reassignment", "throttle", "change"} < set(causes.values())


def _name_causes(fleet: SimulatedFleet) -> dict[tuple[str, int], str]:
    """Return the cause of each bad minute by cluster and minute since 1970."""
    causes = {}
    for cluster, profile in enumerate(fleet.profiles):
        intervals = find_cause_intervals(fleet, cluster, list_health_events(fleet, cluster))
        for week in range(fleet.weeks):
            simulated_week = fleet.simulate_week(cluster, week)
            first = int(simulated_week.start.timestamp()) // 60
            named = find_causes(simulated_week, 100_000, intervals)
            for minute in np.flatnonzero(~np.ma.getmaskarray(named)):
                causes[profile.cluster_id, first + int(minute)] = str(named[minute])
    return causes


def test_about_half_of_the_planned_changes_cost_something() -> None:
    fleet = history(clusters=CLUSTERS, minutes=WEEKS * WEEK)
    changes = [change for cluster in range(CLUSTERS) for change in fleet.changes(cluster)]
    planned = [change for change in changes if change.kind in ("roll", "reassignment", "throttle")]
    share = sum(change.incident_id is not None for change in planned) / len(planned)
    assert 0.4 < share < 0.7
    ids = {entry["id"] for entry in fleet.ledger()["incidents"]}
    assert {change.incident_id for change in changes} - {None} <= ids


def test_a_roll_restarts_each_broker_in_turn_and_what_lasts_has_a_begin_and_an_end() -> None:
    fleet = history(clusters=CLUSTERS, minutes=WEEKS * WEEK)
    for cluster in range(CLUSTERS):
        for change in fleet.changes(cluster):
            records = change.records()
            if change.kind == "roll":
                assert [record.broker_id for record in records] == list(fleet.profile(cluster).brokers)
                assert all(before.starts < after.starts for before, after in pairwise(records))
            elif change.kind in ("reassignment", "throttle"):
                begun, ended = records
                assert (begun.change_id, begun.ends) == (ended.change_id, None)
                assert (ended.starts, ended.ends) == (change.start, change.end)


def test_a_release_concerns_a_region_and_every_record_can_be_stored() -> None:
    fleet = history(clusters=2, minutes=20 * WEEK)
    releases = list(fleet.releases())
    assert 2 < len(releases) < 15
    records = [record for release in releases for record in release.records()]
    assert {record.segment for record in records} == {"region"}
    every_record = list(fleet.change_records())
    assert [ClusterChange.decode(record.encode()) for record in every_record] == every_record
    assert len({record.event_id for record in every_record}) == len(every_record)


def test_a_fleet_without_incidents_has_no_changes() -> None:
    assert list(history(incidents_per_week=0.0).change_records()) == []
