"""Burn alerts: closed minutes agree with the oracle, and findings with worked examples."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.contract import Leg, ProbeMinute
from fleetgauge_core.detection import (
    BURN_CONDITIONS,
    BurnSettings,
    Finding,
    FindingSubject,
    FleetBurnState,
    HealthCondition,
    HealthState,
    exclude_paged_errors,
    fold_minute_record,
    fold_past_minute_record,
    remove_cluster_burns,
    restore_burn_state,
)
from fleetgauge_core.detection.finding import build_finding
from fleetgauge_core.fleet import BURN_WINDOWS
from fleetgauge_core.slo.burn import BurnMinute
from tests.oracle.minute_rules import compute_broker_minutes, compute_cluster_minutes, drop_duplicates
from tests.oracle.settings import ClusterSettings
from tests.probe_minutes import CLIENT, MINUTE, NOON

SETTINGS = BurnSettings(100_000, 0.9995, BURN_WINDOWS[7], 100_000)
BROKERS = (1, 2, 3)
NO_MINUTES = FleetBurnState()


def at(minute: float) -> datetime:
    return NOON + minute * MINUTE


def record(minute: int, broker: int, failed: int = 0, latency_us: int = 5_000, **fields: Any) -> ProbeMinute:
    """A record of 100 probes of a broker from one vantage."""
    whole = replace(
        CLIENT,
        broker_id=broker,
        minute=at(minute),
        run_id=f"{broker}",
        sequence=minute,
        expected_brokers=BROKERS,
        acknowledged=100 - failed,
        received=100 - failed,
        ack_us=(1_000,) * (100 - failed),
        e2e_us=(latency_us,) * (100 - failed),
        produce_failures={"MSG_TIMED_OUT": failed} if failed else {},
        consume_failures={},
        lost=0,
    )
    return replace(whole, **fields)


def minutes(first: int, end: int, failed: int = 0, latency_us: int = 5_000) -> list[ProbeMinute]:
    """Records of three brokers; so many of the 100 probes of broker 2 fail."""
    return [
        record(minute, broker, failed if broker == 2 else 0, latency_us)
        for minute in range(first, end)
        for broker in BROKERS
    ]


def fold_records(
    records: Iterable[ProbeMinute], state: FleetBurnState = NO_MINUTES
) -> tuple[FleetBurnState, list[Finding]]:
    """Return the burn state after the records, and all findings."""
    findings: list[Finding] = []
    for probe_minute in records:
        state, more = fold_minute_record(state, probe_minute, SETTINGS)
        findings += more
    return state, findings


def transitions(findings: Sequence[Finding]) -> list[tuple[HealthCondition, bool, datetime]]:
    return [(finding.subject.condition, finding.is_alert, finding.event.at) for finding in findings]


PROBES = st.sampled_from([(100, 0), (100, 1), (100, 2), (60, 0), (25, 0), (25, 25), (49, 3), (100, 100)])


@st.composite
def random_records(draw: st.DrawFn) -> list[ProbeMinute]:
    """Records of up to two vantages, ordered by minute; some are late, duplicated or missing."""
    records: list[ProbeMinute] = []
    for minute in range(draw(st.integers(1, 6))):
        of_minute: list[ProbeMinute] = []
        for broker in BROKERS:
            for vantage in draw(st.sets(st.sampled_from("ab"))):
                attempted, failed = draw(PROBES)
                of_minute.append(
                    record(
                        minute,
                        broker,
                        vantage=vantage,
                        run_id=f"{vantage}{broker}",
                        attempted=attempted,
                        e2e_us=(draw(st.sampled_from([9_000, 100_000, 100_001])),) * (attempted - failed),
                        schedule_lag_p95_us=draw(st.sampled_from([1_000, 100_000, 100_001])),
                        expected_brokers=tuple(draw(st.sets(st.sampled_from((1, 2, 3, 4)), min_size=1))),
                    )
                )
        of_minute += draw(st.lists(st.sampled_from(of_minute), max_size=2)) if of_minute else []
        records += draw(st.permutations(of_minute))
    return records


@given(random_records())
def test_closed_minutes_agree_with_those_of_silver(records: list[ProbeMinute]) -> None:
    state, _ = fold_records([*records, record(10, 1)])
    cluster_settings = ClusterSettings("orders", retired=SETTINGS.retired_brokers)
    rows = drop_duplicates([asdict(probe_minute) for probe_minute in [*records, record(10, 1)]])
    expected_rows = compute_cluster_minutes(
        compute_broker_minutes(rows, cluster_settings, SETTINGS.agent_late_us)
    )
    expected = {
        row["minute"]: BurnMinute(
            row["minute"],
            (row["latency_p99_censored_us"] or 0) > SETTINGS.latency_objective_us,
            row["attempted"],
            row["succeeded"],
            row["brokers_expected"],
            row["brokers_measured"],
        )
        for row in expected_rows
        if row["minute"] < at(10)
    }
    # Silver begins with the first minute that has a measured broker.
    closed = {
        burn_minute.minute: burn_minute
        for burn_minute in state.cluster("orders").minutes
        if burn_minute.minute in expected
    }
    assert closed == expected


def test_losing_a_third_of_all_probes_pages_from_the_second_minute_until_half_an_hour_later() -> None:
    """Each minute costs 1/3 of a minute; the 1 h window fires at 13.44 x 0.0005 x 60 = 0.40 minutes."""
    _, findings = fold_records([*minutes(0, 60), *minutes(60, 70, failed=100), *minutes(70, 110)])
    pages = [
        transition
        for transition in transitions(findings)
        if transition[0] is HealthCondition.AVAILABILITY_BURN
    ]
    assert pages == [
        (HealthCondition.AVAILABILITY_BURN, True, at(62)),
        (HealthCondition.AVAILABILITY_BURN, False, at(100)),
    ]


def test_minutes_over_the_objective_burn_the_latency_budget() -> None:
    """The 1 h window fires at 13.44 x 0.01 x 60 = 8.06 bad minutes, the 6 h one at 12.6."""
    _, findings = fold_records([*minutes(0, 60), *minutes(60, 70, latency_us=100_001), *minutes(70, 71)])
    assert transitions(findings) == [(HealthCondition.LATENCY_BURN, True, at(69))]
    _, findings = fold_records([*minutes(0, 60), *minutes(60, 70, latency_us=100_000), *minutes(70, 71)])
    assert findings == []


def test_the_evidence_has_the_burn_rates_by_window() -> None:
    _, findings = fold_records([*minutes(0, 60), *minutes(60, 63, failed=100)])
    (page,) = [
        finding for finding in findings if finding.subject.condition is HealthCondition.AVAILABILITY_BURN
    ]
    assert '"1h/5m": {"burn": [22.22, 266.67], "factor": 13.44}' in page.event.evidence


def outage(opened: float, cleared: float) -> list[Finding]:
    """Return the findings of broker 2 being down from one minute to another."""
    subject = FindingSubject("orders", HealthCondition.BROKER_DOWN, 2)
    return [
        build_finding(subject, HealthState.HEALTHY, HealthState.BROKER_DOWN, at(opened), {}),
        build_finding(subject, HealthState.BROKER_DOWN, HealthState.HEALTHY, at(cleared), {}),
    ]


def test_errors_during_a_broker_alert_do_not_page_again() -> None:
    opened, cleared = outage(61, 69.5)
    state, findings = fold_records([*minutes(0, 60), *minutes(60, 61, failed=100)])
    state, more = fold_records(minutes(61, 70, failed=100), exclude_paged_errors(state, opened))
    findings += more
    state, more = fold_records(minutes(70, 140), exclude_paged_errors(state, cleared))
    assert findings + more == []


def test_errors_after_a_broker_alert_has_cleared_page() -> None:
    state, _ = fold_records(minutes(0, 60))
    for finding in outage(60, 65):
        state = exclude_paged_errors(state, finding)
    _, findings = fold_records(minutes(60, 80, failed=100), state)
    # Cleared at 65 and excluded until 66: the alert fires after two more minutes.
    assert transitions(findings)[0] == (HealthCondition.AVAILABILITY_BURN, True, at(68))


def test_planned_maintenance_burns_no_budget_during_or_after_it() -> None:
    """Broker 2 fails all probes for half an hour, after an hour and before half an hour without errors."""
    records = [*minutes(0, 60), *minutes(60, 90, failed=100), *minutes(90, 120)]

    def fold_with_maintenance(*brokers: int | None) -> set[HealthCondition]:
        def maintenance(minute: datetime) -> frozenset[int | None]:
            return frozenset(brokers if at(60) <= minute < at(90) else ())

        state, conditions = NO_MINUTES, set[HealthCondition]()
        for probe_minute in records:
            state, more = fold_minute_record(state, probe_minute, SETTINGS, maintenance)
            conditions |= {finding.subject.condition for finding in more}
        return conditions

    assert fold_with_maintenance() == fold_with_maintenance(1) == set(BURN_CONDITIONS)
    assert fold_with_maintenance(None) == fold_with_maintenance(2) == set()


def test_removing_a_cluster_clears_its_burn_alerts() -> None:
    state, _ = fold_records(minutes(0, 10, failed=100))
    kept, cleared = remove_cluster_burns(state, lambda cluster_id: cluster_id == CLIENT.cluster_id, at(20))
    assert (
        [finding.subject.condition for finding in cleared]
        == sorted(state.cluster(CLIENT.cluster_id).burning)
        != []
    )
    assert all(finding.is_cleared and finding.event.at == at(20) for finding in cleared)
    assert kept == NO_MINUTES
    assert remove_cluster_burns(state, lambda _: False, at(20)) == (state, ())


def test_findings_of_paths_and_of_other_clusters_exclude_no_errors() -> None:
    state, _ = fold_records(minutes(0, 60))
    for subject in (
        FindingSubject("payments", HealthCondition.BROKER_DOWN, 2),
        FindingSubject("orders", HealthCondition.PATH, None, "a", 2),
    ):
        state = exclude_paged_errors(
            state,
            build_finding(subject, HealthState.HEALTHY, HealthState(subject.condition.value), at(60), {}),
        )
    _, findings = fold_records(minutes(60, 64, failed=100), state)
    assert findings


def test_an_alert_neither_opens_nor_clears_while_coverage_is_too_low() -> None:
    low_coverage = [record(minute, 1) for minute in range(63, 80)]
    _, findings = fold_records([*minutes(0, 60), *minutes(60, 63, failed=100), *low_coverage])
    assert (HealthCondition.AVAILABILITY_BURN, False) not in [
        transition[:2] for transition in transitions(findings)
    ]
    only_failures = [record(minute, 1, failed=100) for minute in range(60)]
    assert fold_records([*only_failures, record(60, 1)])[1] == []


def test_minutes_without_records_are_expected_and_not_measured() -> None:
    state, _ = fold_records([*minutes(0, 1), *minutes(3, 5)])
    assert [
        (burn_minute.expected, burn_minute.measured) for burn_minute in state.cluster("orders").minutes
    ] == [
        (3, 3),
        (3, 0),
        (3, 0),
        (3, 3),
    ]


def test_late_records_and_the_leader_leg_change_nothing() -> None:
    state, _ = fold_records(minutes(0, 5))
    for probe_minute in (record(2, 2, failed=100, sequence=99), record(5, 1, leg=Leg.LEADER, sequence=98)):
        assert fold_minute_record(state, probe_minute, SETTINGS) == (state, ())


def test_past_records_yield_no_finding_until_the_first_recent_record() -> None:
    state = FleetBurnState()
    for probe_minute in [*minutes(0, 60), *minutes(60, 70, failed=100)]:
        state = fold_past_minute_record(state, probe_minute, SETTINGS)
    _, findings = fold_records(minutes(70, 72), state)
    assert (HealthCondition.AVAILABILITY_BURN, True, at(70)) in transitions(findings)


def test_a_restored_state_continues_where_it_ended() -> None:
    records = [*minutes(0, 60), *minutes(60, 70, failed=100), *minutes(70, 110)]
    uninterrupted, all_findings = fold_records(records)
    for cut in range(150, len(records), 37):
        before, findings = fold_records(records[:cut])
        stored_minutes = {"orders": before.cluster("orders").minutes}
        restored = restore_burn_state(findings, stored_minutes)
        assert restored.open_findings() == before.open_findings()
        # The records of the open minute are read again.
        start = before.cluster("orders").minutes[-1].minute
        rest = [probe_minute for probe_minute in records if probe_minute.minute > start]
        after, more = fold_records(rest, restored)
        assert transitions([*findings, *more]) == transitions(all_findings)
        assert after.cluster("orders").minutes == uninterrupted.cluster("orders").minutes


def test_minutes_older_than_three_days_are_dropped() -> None:
    last = record(6_000, 1)
    state, _ = fold_records([*minutes(0, 2), last])
    kept = state.cluster("orders").minutes
    assert (kept[0].minute, kept[-1].minute) == (last.minute - timedelta(days=3), last.minute - MINUTE)
    assert len(kept) == 4320


@given(
    st.lists(
        st.one_of(
            st.tuples(st.sampled_from([0, 0, 1, 30]), st.sampled_from([5_000, 5_000, 200_000])),
            st.sampled_from([HealthState.BROKER_DOWN, HealthState.HEALTHY]),
            st.just(40),
        ),
        max_size=25,
    )
)
def test_incremental_prefix_sums_agree_with_rebuilt_ones(
    steps: list[tuple[int, int] | HealthState | int],
) -> None:
    """Minutes with failed or slow probes, gaps, and an alert of a broker that opens and clears."""
    broker_down = FindingSubject(CLIENT.cluster_id, HealthCondition.BROKER_DOWN, 2)
    incremental = rebuilt = NO_MINUTES
    minute, health_state = 0, HealthState.HEALTHY
    for step in steps:
        rebuilt = FleetBurnState(
            {name: replace(cluster, history=None) for name, cluster in rebuilt.clusters.items()}
        )
        if isinstance(step, HealthState):
            finding = build_finding(broker_down, health_state, step, at(minute), {})
            health_state = step
            incremental = exclude_paged_errors(incremental, finding)
            rebuilt = exclude_paged_errors(rebuilt, finding)
        elif isinstance(step, int):
            minute += step
        else:
            for probe_minute in minutes(minute, minute + 1, *step):
                incremental, findings = fold_minute_record(incremental, probe_minute, SETTINGS)
                rebuilt, expected = fold_minute_record(rebuilt, probe_minute, SETTINGS)
                assert findings == expected
            minute += 1
        assert incremental == rebuilt
