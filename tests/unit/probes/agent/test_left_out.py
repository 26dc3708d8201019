"""Probes that tell of the agent instead of the broker. Times are milliseconds, as in test_ledger."""

import pytest

from fleetgauge_core.contract import Leg
from tests.unit.probes.agent.ledger_bench import HOME, MS, Bench


@pytest.fixture
def client() -> Bench:
    return Bench(Leg.CLIENT)


@pytest.fixture
def leader() -> Bench:
    return Bench(Leg.LEADER)


@pytest.mark.parametrize("leg", Leg)
def test_a_probe_that_was_under_way_in_a_stall_is_left_out_whatever_became_of_it(leg: Leg) -> None:
    bench = Bench(leg)
    bench.sent(0, due=1_000)
    bench.sent(1, due=1_100)
    bench.stalled(1_200, 31_200)
    bench.acked(0, 31_201)
    bench.failed(1, 31_201)
    bench.sent(2, due=31_300)
    for sequence, at in ((0, 31_202), (2, 31_306)):
        bench.received(sequence, at)
    bench.acked(2, 31_305)
    bench.routed(32_000, HOME)
    pulse = bench.ledger.pulse(32_000 * MS)
    assert (pulse.due, pulse.succeeded, pulse.failed, pulse.outstanding) == (1, 1, 0, 0)
    tally = bench.take()
    assert (tally.attempted, tally.left_out) == (1, 2)
    assert not tally.produce_failures


def test_a_probe_that_was_sent_late_is_left_out_and_its_lag_is_told(client: Bench) -> None:
    client.sent(0, due=0, lag=100)
    client.sent(1, due=600, lag=99)
    for sequence, at in ((0, 105), (1, 704)):
        client.acked(sequence, at)
        client.received(sequence, at)
    tally = client.take()
    assert (tally.attempted, tally.left_out) == (1, 1)
    assert tally.lag_us == (99_000, 100_000)


@pytest.mark.parametrize("stalled_ms", [100, 999])
def test_no_short_stall_excuses_a_broker_that_does_not_answer(client: Bench, stalled_ms: int) -> None:
    client.sent(0, due=1_000, lag=stalled_ms)
    client.stalled(2_000, 2_000 + stalled_ms)
    client.failed(0, 6_000)
    tally = client.take()
    assert (tally.attempted, tally.produce_failures) == (1, {"MSG_TIMED_OUT": 1})


def test_a_stall_after_the_acknowledgement_leaves_a_leaders_success_what_it_is(leader: Bench) -> None:
    leader.sent(0, due=1_000)
    leader.acked(0, 1_005)
    leader.stalled(1_010, 9_000)
    leader.routed(9_001, HOME)
    assert leader.take().ack_us == (5_000,)


def test_a_slow_success_outlives_a_stall_that_is_a_small_part_of_it(leader: Bench) -> None:
    leader.sent(0, due=1_000)
    leader.stalled(1_100, 1_200)
    leader.acked(0, 1_501)
    leader.sent(1, due=1_600)
    leader.stalled(1_700, 1_800)
    leader.acked(1, 2_100)
    leader.routed(2_200, HOME)
    assert leader.take().ack_us == (501_000,)


def test_a_probe_that_our_own_queue_had_no_room_for_tells_nothing_of_the_broker(client: Bench) -> None:
    client.sent(0)
    client.failed(0, 1, "QUEUE_FULL")
    tally = client.take()
    assert (tally.attempted, tally.left_out, tally.produce_failures) == (0, 1, {})
