"""Probes that measure the agent instead of the broker. Times are milliseconds."""

import pytest

from fleetgauge_core.contract import Leg
from fleetgauge_core.contract.failure_codes import AgentFault
from tests.unit.probes.agent.tracker_bench import HOME, MS, TrackerBench


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
