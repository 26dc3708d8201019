"""Failures of the agent's own: excluded, with their reason, and never an excuse for a broker."""

import logging
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.contract import Leg
from fleetgauge_core.contract.failure_codes import AGENT_CODES, AgentFault, find_agent_fault
from fleetgauge_core.kafka import LeaderAndEpoch, LoginSurvey
from fleetgauge_core.metadata import PartitionMetadata
from fleetgauge_probes.agent.agent_faults import AgentFaultLog, FaultPeriods, ProbeFailure, RefusalJudge
from fleetgauge_probes.agent.cluster_state import BrokerLeg
from fleetgauge_probes.agent.leader_eligibility import LeaderEligibility
from fleetgauge_probes.agent.minute_tally import MinuteTally
from tests.unit.probes.agent.cluster_bench import ClusterBench, SentProbe
from tests.unit.probes.agent.tracker_bench import HOME, MS, TrackerBench

SECOND_NS = 1_000_000_000
FORBIDDEN = "TOPIC_AUTHORIZATION_FAILED"
ALL_LEAD = {0: LeaderAndEpoch(1, 4), 1: LeaderAndEpoch(2, 4), 2: LeaderAndEpoch(3, 4)}
AGREED_CODES = sorted(
    code for code in AGENT_CODES if (fault := find_agent_fault(code)) and fault.needs_agreement
)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ClusterBench:
    bench = ClusterBench(monkeypatch)
    bench.start_probing()
    return bench


def answer_for(bench: ClusterBench, seconds: float, codes: dict[int, str | None]) -> None:
    """Probe for so many seconds; each broker acknowledges at once, or refuses with its code."""
    for _ in range(round(seconds * 10)):
        bench.respond(*bench.state.registered)
        bench.sender.record_routes(bench.now_ns, ALL_LEAD)
        for probe in bench.send_for(0.1):
            answer(bench, probe, codes.get(probe.key.broker_id))
        bench.sender.record_routes(bench.now_ns, ALL_LEAD)


def answer(bench: ClusterBench, probe: SentProbe, code: str | None) -> None:
    probe.report(bench.now_ns, code)
    if code is None and probe.key.leg is Leg.CLIENT:
        tracker = bench.state.trackers[BrokerLeg(probe.key.broker_id, Leg.CLIENT)]
        tracker.record_receipt(probe.key.sequence, bench.now_ns)


def tally(bench: ClusterBench, broker_id: int, leg: Leg) -> MinuteTally:
    tracker = bench.state.trackers[BrokerLeg(broker_id, leg)]
    tracker.expire_overdue(bench.now_ns + 14 * SECOND_NS)
    return tracker.tally_minute(0)


def test_a_host_on_which_no_broker_can_be_listed_is_reported(bench: ClusterBench) -> None:
    bench.state.unreachable_reason = "own_resources"
    assert bench.state.list_agent_faults() == {AgentFault.HOST: {"OWN_RESOURCES"}}
    bench.state.unreachable_reason = "no_answer"
    assert bench.state.list_agent_faults() == {}


# What every broker refuses ------------------------------------------------------


@pytest.mark.parametrize("code", [FORBIDDEN, "INVALID_RECORD", "UNKNOWN_TOPIC_OR_PART", "UNKNOWN_TOPIC"])
@pytest.mark.parametrize("leg", Leg)
def test_what_every_broker_refuses_is_not_measured_and_says_why(
    bench: ClusterBench, code: str, leg: Leg
) -> None:
    answer_for(bench, 6, {})
    answer_for(bench, 20, dict.fromkeys((1, 2, 3), code))
    counts = tally(bench, 2, leg)
    assert counts.attempted == len(counts.ack_us)
    assert counts.attempted <= 10
    assert counts.excluded == counts.produce_failures[code] >= 30
    pulse = bench.state.trackers[BrokerLeg(2, leg)].build_pulse(bench.now_ns)
    fault = find_agent_fault(code)
    assert (pulse.failed, pulse.due, pulse.agent_fault) == (0, 0, fault)
    assert bench.state.list_agent_faults() == {fault: {code}}


def test_a_fault_that_ended_leaves_no_trace_in_the_pulse(bench: ClusterBench) -> None:
    answer_for(bench, 20, dict.fromkeys((1, 2, 3), FORBIDDEN))
    answer_for(bench, 3, {})
    pulse = bench.state.trackers[BrokerLeg(2, Leg.LEADER)].build_pulse(bench.now_ns)
    assert pulse.agent_fault is None
    assert pulse.succeeded == pulse.due > 0
    assert bench.state.list_agent_faults() == {}


@given(
    st.sampled_from(AGREED_CODES),
    st.lists(st.booleans(), min_size=1, max_size=40),
)
def test_a_broker_that_refuses_alone_fails_whatever_its_code(code: str, refuses: list[bool]) -> None:
    """It may refuse only some requests; others accept one every 600 ms."""
    judge, excused = RefusalJudge(), []
    for number, is_refused in enumerate([*refuses, *[True] * 20]):
        at_ns = number * 600_000_000
        judge.record_acceptance(1, at_ns)
        judge.record_acceptance(3, at_ns)
        if is_refused:
            excused.append((at_ns, judge.find_fault(2, code, at_ns)))
        else:
            judge.record_acceptance(2, at_ns)
    first_ns = excused[-1][0] - 20 * 600_000_000
    assert [fault for at_ns, fault in excused if at_ns > first_ns + 6 * SECOND_NS] == [None] * 10


def test_a_change_that_reaches_the_brokers_one_after_another_blames_none() -> None:
    judge = RefusalJudge()
    for broker_id in (1, 2, 3):
        judge.record_acceptance(broker_id, 0)
    for at_ms in range(100, 5_000, 100):
        for broker_id in (1, 2):
            assert judge.find_fault(broker_id, FORBIDDEN, at_ms * MS)
        if at_ms < 3_000:
            judge.record_acceptance(3, at_ms * MS)
        else:
            assert judge.find_fault(3, FORBIDDEN, at_ms * MS)


@pytest.mark.parametrize(
    "is_refused",
    [lambda probe: probe % 20 == 0, lambda probe: probe % 25 < 7, lambda probe: probe % 200 == 0],
    ids=["one in twenty", "4 s of every 15 s", "every two minutes"],
)
def test_a_broker_that_refuses_alone_now_and_then_is_excused_only_at_first(
    is_refused: Callable[[int], bool],
) -> None:
    judge, faults = RefusalJudge(), []
    for probe in range(6_000):
        at_ns = probe * 600_000_000
        judge.record_acceptance(1, at_ns)
        if is_refused(probe):
            faults.append((at_ns, judge.find_fault(2, FORBIDDEN, at_ns)))
        else:
            judge.record_acceptance(2, at_ns)
    assert len(faults) >= 30
    assert [fault for at_ns, fault in faults if at_ns >= 5 * SECOND_NS] == [None] * (
        len(faults) - sum(at_ns < 5 * SECOND_NS for at_ns, _ in faults)
    )


def test_every_change_that_reaches_the_brokers_one_after_another_is_excused() -> None:
    """A permission is taken away and given back ten times; each broker learns of it at another time."""
    judge = RefusalJudge()
    for at_ms in range(3_000, 600_000, 200):
        for broker_id, delay_ms in ((1, 0), (2, 1_500), (3, 3_000)):
            if (at_ms - delay_ms) % 60_000 >= 30_000:
                assert judge.find_fault(broker_id, FORBIDDEN, at_ms * MS)
            else:
                judge.record_acceptance(broker_id, at_ms * MS)


def test_a_quota_and_the_host_need_no_agreement() -> None:
    judge = RefusalJudge()
    for at_s in range(60):
        judge.record_acceptance(1, at_s * SECOND_NS)
        assert judge.find_fault(2, "QUEUE_FULL", at_s * SECOND_NS) is AgentFault.HOST
        assert judge.find_fault(2, "THROTTLED", at_s * SECOND_NS) is AgentFault.QUOTA
        assert judge.find_fault(2, "MSG_TIMED_OUT", at_s * SECOND_NS) is None


def test_one_broker_that_refuses_for_a_minute_is_measured_as_failing(bench: ClusterBench) -> None:
    answer_for(bench, 40, {2: FORBIDDEN})
    alone, other = (tally(bench, broker_id, Leg.LEADER) for broker_id in (2, 3))
    assert alone.produce_failures[FORBIDDEN] > 55
    assert alone.attempted > 50
    assert not alone.ack_us
    assert len(other.ack_us) == other.attempted > 55


def test_a_broker_that_hangs_while_permissions_are_missing_fails(bench: ClusterBench) -> None:
    answer_for(bench, 12, {1: FORBIDDEN, 2: "MSG_TIMED_OUT", 3: FORBIDDEN})
    hung = tally(bench, 2, Leg.LEADER)
    assert (hung.attempted, hung.produce_failures) == (hung.attempted, {"MSG_TIMED_OUT": hung.attempted})
    assert hung.attempted >= 19
    pulse = bench.state.trackers[BrokerLeg(2, Leg.LEADER)].build_pulse(bench.now_ns)
    assert pulse.agent_fault is None
    assert pulse.failed > 0


# Reading ---------------------------------------------------------------------------


def test_a_client_leg_is_not_measured_while_the_consumer_is_refused(bench: ClusterBench) -> None:
    for partition in range(3):
        bench.state.record_fetch(partition, bench.now_ns, FORBIDDEN)
    for _ in range(20):
        for probe in bench.send_for(1):
            probe.report(bench.now_ns, None)
        bench.state.review_fetches(BrokerLeg(1, Leg.CLIENT), bench.now_ns)
    tracker = bench.state.trackers[BrokerLeg(1, Leg.CLIENT)]
    not_received = bench.state.review_fetches(BrokerLeg(1, Leg.CLIENT), bench.now_ns)
    assert not_received == ProbeFailure(FORBIDDEN, AgentFault.RIGHTS)
    tracker.expire_overdue(bench.now_ns + 14 * SECOND_NS, not_received)
    counts = tracker.tally_minute(0)
    assert (counts.attempted, counts.lost, counts.produce_failures) == (0, 0, {})
    assert counts.consume_failures == {FORBIDDEN: counts.excluded}
    assert counts.excluded >= 30
    leader = bench.state.trackers[BrokerLeg(1, Leg.LEADER)].build_pulse(bench.now_ns)
    assert leader.agent_fault is None


def test_a_broker_that_refuses_the_consumer_alone_loses_probes(bench: ClusterBench) -> None:
    bench.state.record_fetch(1, bench.now_ns, "UNKNOWN_TOPIC_OR_PART")
    for _ in range(30):
        for probe in bench.send_for(1):
            answer(bench, probe, None) if probe.key.broker_id != 2 else probe.report(bench.now_ns, None)
        for partition in (0, 2):
            bench.state.record_fetch(partition, bench.now_ns, None)
        not_received = bench.state.review_fetches(BrokerLeg(2, Leg.CLIENT), bench.now_ns)
        bench.state.trackers[BrokerLeg(2, Leg.CLIENT)].expire_overdue(bench.now_ns, not_received)
    counts = bench.state.trackers[BrokerLeg(2, Leg.CLIENT)].tally_minute(0)
    assert counts.lost > 20
    assert counts.attempted >= counts.lost


def test_what_arrives_late_after_the_fault_is_not_slow(bench: ClusterBench) -> None:
    state, client = bench.state, BrokerLeg(1, Leg.CLIENT)
    state.record_fetch(0, bench.now_ns, FORBIDDEN)
    waiting = [probe for probe in bench.send_for(6) if BrokerLeg(*probe.key[:2]) == client]
    for probe in waiting:
        probe.report(bench.now_ns, None)
    for probe in waiting:
        state.trackers[client].record_receipt(probe.key.sequence, bench.now_ns)
    state.record_fetch(0, bench.now_ns, None)
    counts = state.trackers[client].tally_minute(0)
    assert (counts.attempted, counts.excluded, counts.e2e_us) == (0, len(waiting), ())


# Logins, the topic's metadata, quotas ------------------------------------------------


def test_a_login_that_one_broker_accepts_is_not_at_fault() -> None:
    assert not LoginSurvey().is_invalid
    assert not LoginSurvey(refused=frozenset({1}), accepted=frozenset({2})).is_invalid
    assert LoginSurvey(refused=frozenset({1, 2})).is_invalid


def test_outstanding_probes_wait_for_a_login_only_where_the_broker_answers(bench: ClusterBench) -> None:
    bench.state.logins = LoginSurvey(refused=frozenset({1, 2, 3}))
    bench.send_for(4)
    bench.respond(1)
    fault = bench.state.login_fault(1)
    pulse = bench.state.trackers[BrokerLeg(1, Leg.CLIENT)].build_pulse(bench.now_ns, fault)
    assert (fault, pulse.agent_fault) == (AgentFault.CREDENTIALS, "credentials")


def test_a_topic_that_cannot_be_described_does_not_make_a_home_unhealthy(bench: ClusterBench) -> None:
    state = bench.state
    state.partitions = {0: PartitionMetadata(2, (1, 2, 3), frozenset({2, 3}))}
    bench.respond(1)
    assert state.assess_home(1, False, bench.now_ns) is LeaderEligibility.UNHEALTHY
    state.topic_fault = AgentFault.RIGHTS
    assert state.assess_home(1, False, bench.now_ns) is LeaderEligibility.EXCUSED
    bench.advance(4)
    assert state.assess_home(1, False, bench.now_ns) is LeaderEligibility.UNHEALTHY


@pytest.mark.parametrize("leg", Leg)
def test_a_probe_that_a_quota_delayed_is_excluded_whatever_its_outcome(leg: Leg) -> None:
    bench = TrackerBench(leg)
    bench.throttles.record(HOME, leg, 1_000 * MS, 1.0)
    for sequence, (due, acknowledged) in enumerate([(1_100, 2_005), (1_200, 8_000), (3_000, 3_005)]):
        bench.send(sequence, due)
        bench.acknowledge(sequence, acknowledged)
        bench.receive(sequence, acknowledged + 1)
    bench.route(9_000, HOME)
    counts = bench.close_minute()
    assert (counts.attempted, counts.excluded) == (2, 1)
    assert counts.produce_failures == {"ACK_LATE": 1, "THROTTLED": 1}


def test_a_fault_period_ends_with_a_probe_that_was_due_in_it() -> None:
    periods = FaultPeriods()
    periods.begin(10, ProbeFailure(FORBIDDEN, AgentFault.RIGHTS))
    periods.begin(12, ProbeFailure("OTHER", AgentFault.HOST))
    periods.end(20, due_ns=9)
    assert periods.failure == ProbeFailure(FORBIDDEN, AgentFault.RIGHTS)
    assert periods.measure(0, 30) == (20, FORBIDDEN)
    periods.end(20, due_ns=10)
    assert periods.failure is None
    assert periods.measure(0, 30) == (10, FORBIDDEN)
    assert periods.measure(20, 30) == (0, "")


def test_a_fault_period_lapses_if_no_probe_fails_by_it_any_longer() -> None:
    periods = FaultPeriods()
    for at_s in (10, 20, 15):
        periods.begin(at_s * SECOND_NS, ProbeFailure(FORBIDDEN, AgentFault.RIGHTS))
    periods.lapse(50 * SECOND_NS)
    assert periods.failure is not None
    periods.lapse(51 * SECOND_NS)
    assert periods.failure is None
    assert periods.measure(0, 100 * SECOND_NS) == (10 * SECOND_NS, FORBIDDEN)


@pytest.mark.parametrize("is_removed", [False, True])
def test_a_fault_ends_on_a_leg_on_which_nothing_is_due(bench: ClusterBench, is_removed: bool) -> None:
    """Permissions return while a broker does not lead, or is gone."""
    answer_for(bench, 5, dict.fromkeys((1, 2, 3), FORBIDDEN))
    if is_removed:
        del bench.state.registered[2], bench.state.homes[2]
    drifted = ALL_LEAD | {1: LeaderAndEpoch(3, 5)}
    for second in range(35):
        bench.respond(*bench.state.registered)
        bench.sender.record_routes(bench.now_ns, drifted)
        for probe in bench.send_for(1):
            answer(bench, probe, None)
        assert second > 1 or bench.state.list_agent_faults() or is_removed
    for broker_leg in bench.legs():
        bench.state.trackers[broker_leg].expire_overdue(bench.now_ns)
    assert bench.state.list_agent_faults() == {}
    assert bench.state.trackers[BrokerLeg(2, Leg.LEADER)].present_fault is None


def test_a_leg_of_a_broker_that_is_gone_shows_no_fault(bench: ClusterBench) -> None:
    failure = ProbeFailure(FORBIDDEN, AgentFault.RIGHTS)
    bench.state.trackers[BrokerLeg(2, Leg.CLIENT)].record_fault(bench.now_ns, failure)
    assert bench.state.list_agent_faults() == {AgentFault.RIGHTS: {FORBIDDEN}}
    del bench.state.homes[2]
    assert bench.state.list_agent_faults() == {}


def test_a_fault_is_logged_when_it_begins_and_when_it_has_ended(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    log = AgentFaultLog("orders")
    for second in range(100):
        holds = 10 <= second < 40 and second % 2 == 0
        present = log.update({AgentFault.RIGHTS: {FORBIDDEN}} if holds else {}, second * SECOND_NS)
        assert (present == {AgentFault.RIGHTS}) == (10 <= second <= 68)
    begins, ends = (record.getMessage() for record in caplog.records)
    assert begins == (
        "orders: not measured, because the agent lacks a permission (TOPIC_AUTHORIZATION_FAILED): "
        "grant what `fleetgauge probe acls` prints"
    )
    assert ends == "orders: measured again; it was not, because the agent lacks a permission"


@pytest.mark.parametrize("code", ["PURGE_QUEUE", "PURGE_INFLIGHT"])
def test_probes_that_the_agent_withdrew_never_count_though_other_brokers_accept(
    bench: ClusterBench, code: str
) -> None:
    leg = BrokerLeg(1, Leg.CLIENT)
    for at_ns in (bench.now_ns, bench.now_ns + 3600 * SECOND_NS):
        for other in (2, 3):
            bench.state.record_acceptance(BrokerLeg(other, Leg.CLIENT), at_ns)
        assert bench.state.explain_failure(leg, code, at_ns) == ProbeFailure(code, AgentFault.PROBE_TOPIC)
