"""Budgets by minutes as the oracle of silver has them, and findings by worked numbers."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.contract import Leg, ProbeMinute
from fleetgauge_core.detection import (
    BURNS,
    Budgets,
    Chain,
    Finding,
    Goal,
    Phase,
    Subject,
    count,
    explain,
    learn,
    remember_budgets,
    retire_budgets,
)
from fleetgauge_core.detection.finding import finding
from fleetgauge_core.fleet import BURN_WINDOWS
from fleetgauge_core.slo.burn import BurnMinute
from tests.oracle.minute_rules import broker_minutes, cluster_minutes, distinct
from tests.oracle.settings import ClusterSettings
from tests.probe_minutes import CLIENT, MINUTE, NOON

GOAL = Goal(100_000, 0.9995, BURN_WINDOWS[7], 100_000)
BROKERS = (1, 2, 3)
NOTHING = Budgets()


def at(minute: float) -> datetime:
    return NOON + minute * MINUTE


def record(minute: int, broker: int, failed: int = 0, took_us: int = 5_000, **fields: Any) -> ProbeMinute:
    """100 probes of one broker from one vantage."""
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
        e2e_us=(took_us,) * (100 - failed),
        produce_failures={"MSG_TIMED_OUT": failed} if failed else {},
        consume_failures={},
        lost=0,
    )
    return replace(whole, **fields)


def minutes(first: int, end: int, failed: int = 0, took_us: int = 5_000) -> list[ProbeMinute]:
    """Of three brokers, of which the second fails so many of its 100 probes."""
    return [
        record(minute, broker, failed if broker == 2 else 0, took_us)
        for minute in range(first, end)
        for broker in BROKERS
    ]


def told(records: Iterable[ProbeMinute], budgets: Budgets = NOTHING) -> tuple[Budgets, list[Finding]]:
    found: list[Finding] = []
    for one in records:
        budgets, more = count(budgets, one, GOAL)
        found += more
    return budgets, found


def changes(found: Sequence[Finding]) -> list[tuple[Chain, bool, datetime]]:
    return [(one.subject.chain, one.names, one.event.at) for one in found]


PROBES = st.sampled_from([(100, 0), (100, 1), (100, 2), (60, 0), (25, 0), (25, 25), (49, 3), (100, 100)])


@st.composite
def some_minutes(draw: st.DrawFn) -> list[ProbeMinute]:
    """A few minutes from up to two vantages, in the order of minutes; some late, some twice, some missing."""
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


@given(some_minutes())
def test_closed_minutes_are_those_of_silver(records: list[ProbeMinute]) -> None:
    budgets, _ = told([*records, record(10, 1)])
    goal = ClusterSettings("orders", retired=GOAL.retired)
    known = distinct([asdict(one) for one in [*records, record(10, 1)]])
    rows = cluster_minutes(broker_minutes(known, goal, GOAL.agent_late_us))
    expected = {
        row["minute"]: BurnMinute(
            row["minute"],
            (row["latency_p99_censored_us"] or 0) > GOAL.latency_us,
            row["attempted"],
            row["succeeded"],
            row["brokers_expected"],
            row["brokers_measured"],
        )
        for row in rows
        if row["minute"] < at(10)
    }
    # Silver begins with the first minute in which anybody was measured.
    closed = {one.minute: one for one in budgets.of("orders").minutes if one.minute in expected}
    assert closed == expected


def test_a_third_of_all_probes_lost_burns_after_the_second_minute_and_until_half_an_hour_later() -> None:
    """1/3 of a minute lost each: over an hour 13.44 x 0.0005 x 60 is 0.40 minutes, over half an hour 0.05."""
    _, found = told([*minutes(0, 60), *minutes(60, 70, failed=100), *minutes(70, 110)])
    paged = [one for one in changes(found) if one[0] is Chain.AVAILABILITY_BURN]
    assert paged == [(Chain.AVAILABILITY_BURN, True, at(62)), (Chain.AVAILABILITY_BURN, False, at(100))]


def test_minutes_over_the_objective_burn_the_latency_budget() -> None:
    """A minute is bad or not: over an hour 13.44 x 0.01 x 60 are 8.06 minutes, over six 12.6."""
    _, found = told([*minutes(0, 60), *minutes(60, 70, took_us=100_001), *minutes(70, 71)])
    assert changes(found) == [(Chain.LATENCY_BURN, True, at(69))]
    _, found = told([*minutes(0, 60), *minutes(60, 70, took_us=100_000), *minutes(70, 71)])
    assert found == []


def test_what_speaks_for_it_is_said_by_window() -> None:
    _, found = told([*minutes(0, 60), *minutes(60, 63, failed=100)])
    (paged,) = [one for one in found if one.subject.chain is Chain.AVAILABILITY_BURN]
    assert '"1h/5m": {"burn": [22.22, 266.67], "factor": 13.44}' in paged.event.evidence


def outage(named: float, cleared: float) -> list[Finding]:
    """Of broker 2, named and cleared then."""
    subject = Subject("orders", Chain.BROKER_DOWN, 2)
    return [
        finding(subject, Phase.HEALTHY, Phase.BROKER_DOWN, at(named), {}),
        finding(subject, Phase.BROKER_DOWN, Phase.HEALTHY, at(cleared), {}),
    ]


def test_what_a_named_broker_costs_needs_no_page_of_its_own() -> None:
    named, cleared = outage(61, 69.5)
    budgets, found = told([*minutes(0, 60), *minutes(60, 61, failed=100)])
    budgets, more = told(minutes(61, 70, failed=100), explain(budgets, named))
    found += more
    budgets, more = told(minutes(70, 140), explain(budgets, cleared))
    assert found + more == []


def test_what_is_lost_when_nobody_is_named_any_more_is_told() -> None:
    budgets, _ = told(minutes(0, 60))
    for one in outage(60, 65):
        budgets = explain(budgets, one)
    _, found = told(minutes(60, 80, failed=100), budgets)
    # Cleared at 65, explained until 66: two minutes of its own later.
    assert changes(found)[0] == (Chain.AVAILABILITY_BURN, True, at(68))


def test_a_planned_outage_burns_nothing_while_it_lasts_nor_when_it_is_over() -> None:
    """An hour well, half an hour in which broker 2 loses all, planned or not, and half an hour well."""
    records = [*minutes(0, 60), *minutes(60, 90, failed=100), *minutes(90, 120)]

    def found(*out: int | None) -> set[Chain]:
        def planned(minute: datetime) -> frozenset[int | None]:
            return frozenset(out if at(60) <= minute < at(90) else ())

        budgets, chains = NOTHING, set[Chain]()
        for one in records:
            budgets, more = count(budgets, one, GOAL, planned)
            chains |= {finding.subject.chain for finding in more}
        return chains

    assert found() == found(1) == set(BURNS)
    assert found(None) == found(2) == set()


def test_what_burns_in_a_cluster_that_is_not_watched_any_more_is_over() -> None:
    budgets, _ = told(minutes(0, 10, failed=100))
    kept, over = retire_budgets(budgets, lambda one: one == CLIENT.cluster_id, at(20))
    assert [one.subject.chain for one in over] == sorted(budgets.of(CLIENT.cluster_id).burning) != []
    assert all(one.clears and one.event.at == at(20) for one in over)
    assert kept == NOTHING
    assert retire_budgets(budgets, lambda _: False, at(20)) == (budgets, ())


def test_findings_of_paths_and_other_clusters_explain_nothing() -> None:
    budgets, _ = told(minutes(0, 60))
    for subject in (Subject("payments", Chain.BROKER_DOWN, 2), Subject("orders", Chain.PATH, None, "a", 2)):
        budgets = explain(budgets, finding(subject, Phase.HEALTHY, Phase(subject.chain.value), at(60), {}))
    _, found = told(minutes(60, 64, failed=100), budgets)
    assert found


def test_where_too_little_is_measured_nothing_begins_and_nothing_ends() -> None:
    blind = [record(minute, 1) for minute in range(63, 80)]
    _, found = told([*minutes(0, 60), *minutes(60, 63, failed=100), *blind])
    assert (Chain.AVAILABILITY_BURN, False) not in [one[:2] for one in changes(found)]
    half = [record(minute, 1, failed=100) for minute in range(60)]
    assert told([*half, record(60, 1)])[1] == []


def test_a_gap_is_expected_and_not_measured() -> None:
    budgets, _ = told([*minutes(0, 1), *minutes(3, 5)])
    assert [(one.expected, one.measured) for one in budgets.of("orders").minutes] == [
        (3, 3),
        (3, 0),
        (3, 0),
        (3, 3),
    ]


def test_late_records_and_the_leader_leg_change_nothing() -> None:
    budgets, _ = told(minutes(0, 5))
    for one in (record(2, 2, failed=100, sequence=99), record(5, 1, leg=Leg.LEADER, sequence=98)):
        assert count(budgets, one, GOAL) == (budgets, ())


def test_of_the_past_is_learnt_and_what_still_burns_is_told_by_the_first_that_is_not_past() -> None:
    budgets = Budgets()
    for one in [*minutes(0, 60), *minutes(60, 70, failed=100)]:
        budgets = learn(budgets, one, GOAL)
    _, found = told(minutes(70, 72), budgets)
    assert (Chain.AVAILABILITY_BURN, True, at(70)) in changes(found)


def test_what_is_remembered_goes_on_where_it_ended() -> None:
    story = [*minutes(0, 60), *minutes(60, 70, failed=100), *minutes(70, 110)]
    whole, all_found = told(story)
    for cut in range(150, len(story), 37):
        before, found = told(story[:cut])
        minutes_known = {"orders": before.of("orders").minutes}
        again = remember_budgets(found, minutes_known)
        assert again.open_findings() == before.open_findings()
        # The minute that was open is heard of again from its beginning.
        start = before.of("orders").minutes[-1].minute
        rest = [one for one in story if one.minute > start]
        after, more = told(rest, again)
        assert changes([*found, *more]) == changes(all_found)
        assert after.of("orders").minutes == whole.of("orders").minutes


def test_three_days_are_remembered_and_no_more() -> None:
    far = record(6_000, 1)
    budgets, _ = told([*minutes(0, 2), far])
    known = budgets.of("orders").minutes
    assert (known[0].minute, known[-1].minute) == (far.minute - timedelta(days=3), far.minute - MINUTE)
    assert len(known) == 4320


@given(
    st.lists(
        st.one_of(
            st.tuples(st.sampled_from([0, 0, 1, 30]), st.sampled_from([5_000, 5_000, 200_000])),
            st.sampled_from([Phase.BROKER_DOWN, Phase.HEALTHY]),
            st.just(40),
        ),
        max_size=25,
    )
)
def test_what_is_counted_up_minute_by_minute_is_what_all_minutes_say_together(
    steps: list[tuple[int, int] | Phase | int],
) -> None:
    """Minutes in which something is lost or slow, gaps, and a broker that is named and cleared meanwhile."""
    sick = Subject(CLIENT.cluster_id, Chain.BROKER_DOWN, 2)
    kept = anew = NOTHING
    minute, phase = 0, Phase.HEALTHY
    for step in steps:
        anew = Budgets({name: replace(one, history=None) for name, one in anew.clusters.items()})
        if isinstance(step, Phase):
            found = finding(sick, phase, step, at(minute), {})
            phase = step
            kept, anew = explain(kept, found), explain(anew, found)
        elif isinstance(step, int):
            minute += step
        else:
            for one in minutes(minute, minute + 1, *step):
                kept, told_kept = count(kept, one, GOAL)
                anew, told_anew = count(anew, one, GOAL)
                assert told_kept == told_anew
            minute += 1
        assert kept == anew
