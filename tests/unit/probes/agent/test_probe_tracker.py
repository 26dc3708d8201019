"""Times are milliseconds here and nanoseconds in the ledger; minute 0 holds whatever is due before 60 s."""

import pytest

from fleetgauge_core.contract import Leg
from fleetgauge_probes.agent.leader_eligibility import Standing
from fleetgauge_probes.agent.probe_tracker import (
    ACK_LATE,
    NO_REPORT,
    NOT_LEADING,
    NOT_RECEIVED,
)
from tests.unit.probes.agent.ledger_bench import HOME, MS, OTHER, Bench, keeps_the_contract


@pytest.fixture
def client() -> Bench:
    return Bench(Leg.CLIENT)


@pytest.fixture
def leader() -> Bench:
    return Bench(Leg.LEADER)


# The client leg ----------------------------------------------------------------


def test_a_client_probe_succeeds_when_acknowledged_and_received(client: Bench) -> None:
    client.sent(0)
    client.acked(0, 20)
    assert client.closable() == []
    client.received(0, 45)
    assert client.closable() == [0]
    tally = client.take()
    assert (tally.attempted, tally.acknowledged, tally.received) == (1, 1, 1)
    assert (tally.ack_us, tally.e2e_us) == ((20_000,), (45_000,))
    assert not tally.produce_failures
    assert not tally.consume_failures


def test_a_client_probe_may_be_received_before_its_acknowledgement_is_reported(client: Bench) -> None:
    client.sent(0)
    client.received(0, 30)
    assert client.closable() == []
    client.acked(0, 40)
    tally = client.take()
    assert (tally.ack_us, tally.e2e_us) == ((40_000,), (30_000,))


def test_a_client_probe_counts_whoever_leads(client: Bench) -> None:
    client.sent(0)
    client.routed(10, OTHER, Standing.OUT)
    client.acked(0, 20)
    client.received(0, 25)
    assert client.take().e2e_us == (25_000,)


def test_an_acknowledgement_on_the_deadline_counts_and_one_after_it_is_late(client: Bench) -> None:
    for sequence, at_ns in ((0, 5_000_000_000), (1, 5_000_000_001)):
        client.sent(sequence)
        client.received(sequence, 100)
        client.ledger.delivered(sequence, at_ns, None)
    tally = client.take()
    assert tally.ack_us == (5_000_000,)
    assert tally.produce_failures == {ACK_LATE: 1}
    assert (tally.attempted, tally.acknowledged, tally.received) == (2, 1, 2)


def test_what_is_received_on_the_deadline_counts_and_after_it_is_lost_though_it_came(client: Bench) -> None:
    for sequence, at_ns in ((0, 10_000_000_000), (1, 10_000_000_001)):
        client.sent(sequence)
        client.acked(sequence, 5)
        client.ledger.received(sequence, at_ns)
    tally = client.take()
    assert tally.e2e_us == (10_000_000,)
    assert tally.consume_failures == {NOT_RECEIVED: 1}
    assert (tally.acknowledged, tally.received, tally.lost) == (2, 2, 1)


def test_a_probe_that_is_acknowledged_and_never_received_is_lost(client: Bench) -> None:
    client.sent(0)
    client.acked(0, 5)
    client.tick(10_000)
    assert client.closable() == []
    client.tick(13_001)
    assert client.closable() == [0]
    tally = client.take()
    assert tally.consume_failures == {NOT_RECEIVED: 1}
    assert (tally.acknowledged, tally.received, tally.lost) == (1, 0, 1)
    assert tally.ack_us == (5_000,)


def test_a_probe_that_nobody_reports_expires(client: Bench) -> None:
    client.sent(0)
    client.tick(13_001)
    tally = client.take()
    assert tally.produce_failures == {NO_REPORT: 1}
    assert tally.attempted == 1


def test_a_failed_delivery_that_lands_after_all_is_a_failure_and_no_duplicate(client: Bench) -> None:
    client.sent(0)
    client.failed(0, 5_100)
    client.received(0, 6_000)
    tally = client.take()
    assert tally.produce_failures == {"MSG_TIMED_OUT": 1}
    assert (tally.acknowledged, tally.received, tally.duplicated, tally.e2e_us) == (0, 1, 0, ())


def test_a_second_report_on_a_decided_probe_changes_nothing(client: Bench) -> None:
    client.sent(0)
    client.failed(0, 10)
    client.acked(0, 20)
    client.failed(0, 30, "OTHER")
    tally = client.take()
    assert tally.produce_failures == {"MSG_TIMED_OUT": 1}
    assert tally.acknowledged == 0


def test_a_probe_that_comes_twice_is_received_once_and_duplicated_once(client: Bench) -> None:
    client.sent(0)
    client.acked(0, 5)
    for at in (10, 11):
        client.received(0, at)
    tally = client.take()
    assert (tally.received, tally.duplicated, tally.e2e_us) == (1, 1, (10_000,))
    assert tally.out_of_order == 0


def test_a_probe_behind_a_later_one_is_out_of_order_and_a_success_all_the_same(client: Bench) -> None:
    for sequence in range(3):
        client.sent(sequence, due=600 * sequence)
        client.acked(sequence, 600 * sequence + 5)
    for sequence in (0, 2, 1):
        client.received(sequence, 1_300 + sequence)
    tally = client.take()
    assert tally.out_of_order == 1
    assert len(tally.e2e_us) == 3


def test_latencies_count_from_the_scheduled_send_so_own_lag_is_inside(client: Bench) -> None:
    client.sent(0, lag=80)
    client.acked(0, 90)
    client.received(0, 95)
    tally = client.take()
    assert (tally.ack_us, tally.e2e_us, tally.lag_us) == ((90_000,), (95_000,), (80_000,))


def test_a_probe_belongs_to_the_minute_it_was_due_in(client: Bench) -> None:
    client.sent(0, due=59_900)
    client.sent(1, due=60_500)
    client.acked(0, 60_600)
    client.received(0, 61_000)
    assert client.closable(2) == [0]
    assert client.take(0).attempted == 1
    assert list(client.ledger.open_minutes()) == [1]


def test_a_probe_whose_fate_is_reported_twice_is_decided_once(leader: Bench) -> None:
    leader.routed(0, HOME)
    leader.sent(0, due=10)
    leader.acked(0, 15)
    leader.failed(0, 20)
    leader.routed(1_000, HOME)
    tally = leader.take()
    assert (tally.attempted, tally.acknowledged) == (1, 0)
    assert tally.produce_failures == {"MSG_TIMED_OUT": 1}


def test_what_was_never_sent_or_was_taken_already_is_ignored(client: Bench) -> None:
    client.received(4, 10)
    client.acked(4, 10)
    client.sent(0)
    client.failed(0, 10)
    client.take()
    client.received(0, 20)
    client.acked(0, 20)
    assert list(client.ledger.open_minutes()) == []


# The leader leg ----------------------------------------------------------------


def test_a_leader_acknowledgement_waits_for_a_look_no_older_than_itself(leader: Bench) -> None:
    leader.sent(0, due=1_000)
    leader.acked(0, 1_005)
    leader.routed(1_004, HOME)
    assert leader.closable() == []
    leader.routed(1_005, HOME)
    tally = leader.take()
    assert (tally.attempted, tally.acknowledged, tally.ack_us) == (1, 1, (5_000,))
    assert (tally.received, tally.e2e_us) == (0, ())


@pytest.mark.parametrize(("judged", "failures"), [(Standing.OUT, {NOT_LEADING: 1}), (Standing.AWAY, {})])
def test_leadership_lost_between_send_and_acknowledgement_fails_an_out_home_and_excuses_an_away_one(
    leader: Bench, judged: Standing, failures: dict[str, int]
) -> None:
    leader.sent(0)
    leader.acked(0, 3_000)
    leader.routed(3_500, OTHER, judged)
    tally = leader.take()
    assert tally.produce_failures == failures
    assert tally.attempted == sum(failures.values())
    assert (tally.acknowledged, tally.ack_us) == (0, ())


def test_an_acknowledgement_across_a_loss_and_return_of_leadership_is_nobodys(leader: Bench) -> None:
    leader.sent(0)
    leader.routed(1_000, OTHER)
    leader.routed(2_000, HOME)
    leader.acked(0, 2_500)
    leader.routed(3_000, HOME)
    assert leader.take().attempted == 0


def test_leadership_that_changes_while_an_acknowledgement_waits_is_not_credited(leader: Bench) -> None:
    leader.sent(0)
    leader.acked(0, 900)
    leader.routed(800, OTHER)
    leader.routed(1_000, HOME)
    assert leader.take().attempted == 0


def test_a_home_that_leads_again_is_credited_for_what_is_sent_from_then_on(leader: Bench) -> None:
    leader.routed(1_000, OTHER)
    leader.routed(2_000, HOME)
    leader.sent(0, due=2_100)
    leader.acked(0, 2_105)
    leader.routed(3_000, HOME)
    tally = leader.take()
    assert tally.ack_us == (5_000,)
    assert tally.led_by == (HOME,)


def test_a_leader_probe_expires_without_a_report(leader: Bench) -> None:
    leader.sent(0)
    leader.tick(5_000)
    assert leader.closable() == []
    leader.tick(8_001)
    assert leader.take().produce_failures == {NO_REPORT: 1}


def test_a_leader_acknowledgement_after_five_seconds_is_late(leader: Bench) -> None:
    leader.sent(0)
    leader.acked(0, 5_001)
    leader.routed(6_000, HOME)
    tally = leader.take()
    assert tally.produce_failures == {ACK_LATE: 1}
    assert tally.acknowledged == 0


@pytest.mark.parametrize(("last_seen", "attempted"), [(HOME, 1), (OTHER, 0)])
def test_without_a_fresh_look_the_last_one_decides_when_patience_ends(
    leader: Bench, last_seen: int, attempted: int
) -> None:
    leader.routed(10, last_seen)
    leader.sent(0, due=20)
    leader.acked(0, 30)
    leader.tick(8_021)
    assert leader.take().attempted == attempted


def test_a_late_look_at_a_probe_that_expired_changes_nothing(leader: Bench) -> None:
    leader.sent(0)
    leader.acked(0, 10)
    leader.tick(8_001)
    leader.routed(9_000, OTHER, Standing.OUT)
    assert leader.take().ack_us == (10_000,)


def test_a_probe_that_an_out_home_cannot_answer_fails_at_once_unsent(leader: Bench) -> None:
    leader.routed(10, OTHER, Standing.OUT)
    leader.ledger.failed_unsent(0, 20 * MS, 23 * MS, 0)
    assert leader.closable() == [0]
    tally = leader.take()
    assert tally.produce_failures == {NOT_LEADING: 1}
    assert (tally.attempted, tally.lag_us) == (1, (3_000,))


def test_the_ledger_knows_whether_the_home_leads() -> None:
    bench = Bench(Leg.LEADER, leader=None)
    assert not bench.ledger.leads
    bench.routed(1, HOME)
    assert bench.ledger.leads
    bench.routed(2, OTHER)
    assert not bench.ledger.leads
    bench.routed(3, None)
    assert not bench.ledger.leads


# Minutes -----------------------------------------------------------------------


def test_a_minute_in_which_nothing_was_due_is_recorded_empty(leader: Bench) -> None:
    assert leader.closable() == [0]
    tally = leader.take()
    assert tally.attempted == 0
    keeps_the_contract(tally, Leg.LEADER)


def test_the_minute_that_runs_is_not_closable(client: Bench) -> None:
    assert client.closable(0) == []


def test_minutes_are_handed_out_oldest_first(client: Bench) -> None:
    for minute in (3, 1, 2):
        client.ledger.open_minute(minute)
    assert client.closable(3) == [0, 1, 2]
    assert list(client.ledger.open_minutes()) == [0, 1, 2, 3]


def test_opening_a_minute_again_keeps_what_it_knows(client: Bench) -> None:
    client.sent(0)
    client.received(0, 1)
    client.received(0, 2)
    client.ledger.open_minute(0)
    client.acked(0, 3)
    assert client.take().duplicated == 1


def test_a_minute_can_be_looked_at_before_it_is_taken(client: Bench) -> None:
    for sequence in range(3):
        client.sent(sequence, 600 * sequence)
    client.acked(0, 5)
    client.received(0, 9)
    stands = client.ledger.tally(0)
    assert (stands.attempted, stands.e2e_us) == (1, (9_000,))
    client.acked(1, 605)
    client.received(1, 610)
    assert client.take().e2e_us == (9_000, 10_000)


def test_probes_undecided_when_their_minute_is_taken_are_left_uncounted(client: Bench) -> None:
    client.sent(0)
    client.sent(1)
    client.failed(1, 5)
    tally = client.take()
    assert (tally.attempted, tally.produce_failures) == (1, {"MSG_TIMED_OUT": 1})


def test_every_broker_that_led_when_a_probe_went_is_named(client: Bench) -> None:
    client.sent(0)
    client.routed(700, OTHER)
    client.sent(1, due=1_200)
    assert client.take().led_by == (HOME, OTHER)


def test_a_minute_tells_the_last_leader_epoch_that_a_probe_was_sent_under(client: Bench) -> None:
    for sequence, epoch in enumerate((4, 6)):
        client.ledger.routed(600 * sequence * MS, HOME, Standing.LEADS, epoch)
        client.sent(sequence, due=600 * sequence + 1)
    client.ledger.routed(59_000 * MS, OTHER, Standing.AWAY, 7)
    assert client.take().leader_epoch == 6


def test_a_minute_under_an_unknown_leader_has_no_epoch() -> None:
    bench = Bench(Leg.CLIENT, leader=None)
    bench.sent(0)
    tally = bench.take()
    assert (tally.led_by, tally.leader_epoch) == ((), None)


# Pulses ------------------------------------------------------------------------


def test_a_pulse_counts_what_is_due_decided_and_outstanding(client: Bench) -> None:
    for sequence in range(4):
        client.sent(sequence, due=600 * sequence)
    for sequence in (0, 1):
        client.acked(sequence, 600 * sequence + 5)
        client.received(sequence, 600 * sequence + 10 * (sequence + 1))
    client.failed(2, 1_900)
    pulse = client.ledger.pulse(3_000 * MS)
    assert (pulse.due, pulse.succeeded, pulse.failed, pulse.outstanding) == (4, 2, 1, 1)
    assert pulse.oldest_outstanding_ms == 1_200
    assert pulse.success_age_ms == 2_400
    assert (pulse.p50_us, pulse.p99_us) == (10_000, 20_000)


def test_a_pulse_before_the_first_probe_knows_no_ages_and_no_quantiles(client: Bench) -> None:
    pulse = client.ledger.pulse(1_000 * MS)
    assert (pulse.due, pulse.succeeded, pulse.failed, pulse.outstanding) == (0, 0, 0, 0)
    assert (pulse.oldest_outstanding_ms, pulse.success_age_ms, pulse.p50_us, pulse.p99_us) == (None,) * 4


def test_a_pulse_looks_back_fifteen_seconds_and_remembers_the_last_success_for_ever(client: Bench) -> None:
    client.sent(0)
    client.acked(0, 5)
    client.received(0, 10)
    client.take()
    client.tick(60_000)
    pulse = client.ledger.pulse(60_000 * MS)
    assert (pulse.due, pulse.succeeded, pulse.p50_us) == (0, 0, None)
    assert pulse.success_age_ms == 60_000


def test_a_pulse_still_counts_the_probes_of_a_minute_that_was_taken(client: Bench) -> None:
    client.sent(0, due=59_900)
    client.acked(0, 59_905)
    client.received(0, 59_910)
    client.take()
    pulse = client.ledger.pulse(61_000 * MS)
    assert (pulse.due, pulse.succeeded) == (1, 1)


def test_a_withdrawn_probe_is_in_no_pulse(leader: Bench) -> None:
    leader.sent(0)
    leader.acked(0, 10)
    assert leader.ledger.pulse(20 * MS).outstanding == 1
    leader.routed(100, OTHER, Standing.AWAY)
    pulse = leader.ledger.pulse(200 * MS)
    assert (pulse.due, pulse.succeeded, pulse.failed, pulse.outstanding) == (0, 0, 0, 0)


def test_a_pulse_of_the_leader_leg_measures_the_acknowledgement(leader: Bench) -> None:
    leader.sent(0)
    leader.acked(0, 4)
    leader.routed(900, HOME)
    pulse = leader.ledger.pulse(1_000 * MS)
    assert (pulse.leg, pulse.p99_us) == (Leg.LEADER, 4_000)
