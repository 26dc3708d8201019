"""Probes that measure the agent instead of the broker. Times are milliseconds."""

import pytest

from fleetgauge_core.contract import Leg
from fleetgauge_core.contract.failure_codes import AgentFault
from tests.unit.probes.agent.tracker_bench import HOME, MS, OTHER, TrackerBench


@pytest.fixture
def client() -> TrackerBench:
    return TrackerBench(Leg.CLIENT)


@pytest.fixture
def leader() -> TrackerBench:
    return TrackerBench(Leg.LEADER)


@pytest.mark.parametrize("leg", Leg)
def test_a_probe_in_flight_during_a_pause_is_excluded_whatever_its_outcome(leg: Leg) -> None:
    bench = TrackerBench(leg)
    bench.send(0, due=1_000)
    bench.send(1, due=1_100)
    bench.pause(1_200, 31_200)
    bench.acknowledge(0, 31_201)
    bench.fail(1, 31_201)
    bench.send(2, due=31_300)
    for sequence, at in ((0, 31_202), (2, 31_306)):
        bench.receive(sequence, at)
    bench.acknowledge(2, 31_305)
    bench.route(32_000, HOME)
    pulse = bench.tracker.build_pulse(32_000 * MS)
    assert (pulse.due, pulse.succeeded, pulse.failed, pulse.outstanding) == (1, 1, 0, 0)
    tally = bench.close_minute()
    assert (tally.attempted, tally.excluded) == (1, 2)
    assert not tally.produce_failures


def test_a_probe_sent_late_is_excluded_and_its_lag_is_reported(client: TrackerBench) -> None:
    client.send(0, due=0, lag=100)
    client.send(1, due=600, lag=99)
    for sequence, at in ((0, 105), (1, 704)):
        client.acknowledge(sequence, at)
        client.receive(sequence, at)
    tally = client.close_minute()
    assert (tally.attempted, tally.excluded) == (1, 1)
    assert tally.lag_us == (99_000, 100_000)


@pytest.mark.parametrize("paused_ms", [100, 999])
def test_a_short_pause_does_not_exclude_a_probe_that_timed_out(client: TrackerBench, paused_ms: int) -> None:
    client.send(0, due=1_000, lag=paused_ms)
    client.pause(2_000, 2_000 + paused_ms)
    client.fail(0, 6_000)
    tally = client.close_minute()
    assert (tally.attempted, tally.produce_failures) == (1, {"MSG_TIMED_OUT": 1})


def test_a_pause_after_the_acknowledgement_does_not_exclude_a_leader_success(leader: TrackerBench) -> None:
    leader.send(0, due=1_000)
    leader.acknowledge(0, 1_005)
    leader.pause(1_010, 9_000)
    leader.route(9_001, HOME)
    assert leader.close_minute().ack_us == (5_000,)


def test_a_slow_success_counts_if_the_pause_is_a_small_part_of_it(leader: TrackerBench) -> None:
    leader.send(0, due=1_000)
    leader.pause(1_100, 1_200)
    leader.acknowledge(0, 1_501)
    leader.send(1, due=1_600)
    leader.pause(1_700, 1_800)
    leader.acknowledge(1, 2_100)
    leader.route(2_200, HOME)
    assert leader.close_minute().ack_us == (501_000,)


def test_a_probe_rejected_by_the_local_queue_is_excluded(client: TrackerBench) -> None:
    client.send(0)
    client.fail(0, 1, "QUEUE_FULL", AgentFault.HOST)
    tally = client.close_minute()
    assert (tally.attempted, tally.excluded, tally.produce_failures) == (0, 1, {"QUEUE_FULL": 1})


@pytest.mark.parametrize("code", ["NOT_ENOUGH_REPLICAS", "REQUEST_TIMED_OUT", "NETWORK_EXCEPTION"])
@pytest.mark.parametrize("leg", Leg)
def test_a_quota_does_not_excuse_what_a_broker_answers(leg: Leg, code: str) -> None:
    bench = TrackerBench(leg)
    bench.throttles.record(HOME, leg, 0, 60)
    bench.send(0, due=1_000)
    bench.fail(0, 1_200, code)
    tally = bench.close_minute()
    assert (tally.attempted, tally.produce_failures) == (1, {code: 1})


def test_a_quota_does_not_excuse_a_probe_that_was_not_sent(leader: TrackerBench) -> None:
    for broker_id in (HOME, OTHER):
        leader.throttles.record(broker_id, Leg.LEADER, 0, 60)
    leader.route(500, OTHER)
    leader.tracker.record_unsent_failure(0, 1_000 * MS, 1_001 * MS, 0)
    tally = leader.close_minute()
    assert (tally.attempted, tally.produce_failures) == (1, {"NOT_LEADING": 1})
    assert leader.tracker.present_fault is None


def test_a_quota_of_the_consumer_excuses_no_failed_acknowledgement(client: TrackerBench) -> None:
    client.throttles.record(HOME, None, 0, 60)
    client.send(0, due=1_000)
    client.send(1, due=1_600)
    client.acknowledge(1, 1_605)
    client.fail(0, 6_000)
    client.expire_overdue(20_000)
    tally = client.close_minute()
    assert (tally.attempted, tally.produce_failures) == (1, {"MSG_TIMED_OUT": 1})
    assert (tally.excluded, tally.consume_failures) == (1, {"THROTTLED": 1})


def test_a_quota_of_the_next_leader_excuses_no_time_out_of_the_last_one(leader: TrackerBench) -> None:
    leader.throttles.record(OTHER, Leg.LEADER, 0, 60)
    leader.send(0, due=1_000)
    leader.route(2_000, OTHER)
    leader.fail(0, 6_000)
    tally = leader.close_minute()
    assert (tally.attempted, tally.produce_failures) == (1, {"MSG_TIMED_OUT": 1})


@pytest.mark.parametrize(
    ("seconds", "code"), [(0.001, "MSG_TIMED_OUT"), (0.9, "MSG_TIMED_OUT"), (1.0, "THROTTLED")]
)
def test_only_a_quota_that_takes_a_fifth_of_it_excuses_a_time_out(
    leader: TrackerBench, seconds: float, code: str
) -> None:
    leader.throttles.record(HOME, Leg.LEADER, 1_500 * MS, seconds)
    leader.send(0, due=1_000)
    leader.fail(0, 6_000)
    present = leader.tracker.present_fault
    assert (present is not None) == (code == "THROTTLED")
    assert leader.close_minute().produce_failures == {code: 1}
