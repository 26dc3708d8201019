"""Times are milliseconds here and nanoseconds in the tracker; minute 0 contains probes due before 60 s."""

import pytest

from fleetgauge_core.contract import Leg
from fleetgauge_probes.agent.leader_eligibility import LeaderEligibility
from fleetgauge_probes.agent.probe_tracker import (
    ACK_LATE,
    NO_REPORT,
    NOT_LEADING,
    NOT_RECEIVED,
)
from tests.unit.probes.agent.tracker_bench import HOME, MS, OTHER, TrackerBench, assert_invariants


@pytest.fixture
def client() -> TrackerBench:
    return TrackerBench(Leg.CLIENT)


@pytest.fixture
def leader() -> TrackerBench:
    return TrackerBench(Leg.LEADER)


# The client leg ----------------------------------------------------------------


def test_a_client_probe_succeeds_when_acknowledged_and_received(client: TrackerBench) -> None:
    client.send(0)
    client.acknowledge(0, 20)
    assert client.closable_minutes() == []
    client.receive(0, 45)
    assert client.closable_minutes() == [0]
    tally = client.close_minute()
    assert (tally.attempted, tally.acknowledged, tally.received) == (1, 1, 1)
    assert (tally.ack_us, tally.e2e_us) == ((20_000,), (45_000,))
    assert not tally.produce_failures
    assert not tally.consume_failures


def test_a_client_probe_may_be_received_before_its_acknowledgement_is_reported(client: TrackerBench) -> None:
    client.send(0)
    client.receive(0, 30)
    assert client.closable_minutes() == []
    client.acknowledge(0, 40)
    tally = client.close_minute()
    assert (tally.ack_us, tally.e2e_us) == ((40_000,), (30_000,))


def test_a_client_probe_counts_under_any_leader(client: TrackerBench) -> None:
    client.send(0)
    client.route(10, OTHER, LeaderEligibility.UNHEALTHY)
    client.acknowledge(0, 20)
    client.receive(0, 25)
    assert client.close_minute().e2e_us == (25_000,)


def test_an_acknowledgement_on_the_deadline_counts_and_one_after_it_is_late(client: TrackerBench) -> None:
    for sequence, at_ns in ((0, 5_000_000_000), (1, 5_000_000_001)):
        client.send(sequence)
        client.receive(sequence, 100)
        client.tracker.record_delivery(sequence, at_ns, None)
    tally = client.close_minute()
    assert tally.ack_us == (5_000_000,)
    assert tally.produce_failures == {ACK_LATE: 1}
    assert (tally.attempted, tally.acknowledged, tally.received) == (2, 1, 2)


def test_a_probe_received_on_the_deadline_counts_and_one_received_later_is_lost(client: TrackerBench) -> None:
    for sequence, at_ns in ((0, 10_000_000_000), (1, 10_000_000_001)):
        client.send(sequence)
        client.acknowledge(sequence, 5)
        client.tracker.record_receipt(sequence, at_ns)
    tally = client.close_minute()
    assert tally.e2e_us == (10_000_000,)
    assert tally.consume_failures == {NOT_RECEIVED: 1}
    assert (tally.acknowledged, tally.received, tally.lost) == (2, 2, 1)


def test_a_probe_that_is_acknowledged_and_never_received_is_lost(client: TrackerBench) -> None:
    client.send(0)
    client.acknowledge(0, 5)
    client.expire_overdue(10_000)
    assert client.closable_minutes() == []
    client.expire_overdue(13_001)
    assert client.closable_minutes() == [0]
    tally = client.close_minute()
    assert tally.consume_failures == {NOT_RECEIVED: 1}
    assert (tally.acknowledged, tally.received, tally.lost) == (1, 0, 1)
    assert tally.ack_us == (5_000,)


def test_a_probe_without_a_delivery_report_expires(client: TrackerBench) -> None:
    client.send(0)
    client.expire_overdue(13_001)
    tally = client.close_minute()
    assert tally.produce_failures == {NO_REPORT: 1}
    assert tally.attempted == 1


def test_a_failed_delivery_that_is_received_later_is_a_failure_and_no_duplicate(client: TrackerBench) -> None:
    client.send(0)
    client.fail(0, 5_100)
    client.receive(0, 6_000)
    tally = client.close_minute()
    assert tally.produce_failures == {"MSG_TIMED_OUT": 1}
    assert (tally.acknowledged, tally.received, tally.duplicated, tally.e2e_us) == (0, 1, 0, ())


def test_a_second_report_on_a_decided_probe_changes_nothing(client: TrackerBench) -> None:
    client.send(0)
    client.fail(0, 10)
    client.acknowledge(0, 20)
    client.fail(0, 30, "OTHER")
    tally = client.close_minute()
    assert tally.produce_failures == {"MSG_TIMED_OUT": 1}
    assert tally.acknowledged == 0


def test_a_probe_consumed_twice_counts_as_received_once_and_duplicated_once(client: TrackerBench) -> None:
    client.send(0)
    client.acknowledge(0, 5)
    for at in (10, 11):
        client.receive(0, at)
    tally = client.close_minute()
    assert (tally.received, tally.duplicated, tally.e2e_us) == (1, 1, (10_000,))
    assert tally.out_of_order == 0


def test_a_probe_received_after_a_later_one_is_out_of_order_but_succeeds(client: TrackerBench) -> None:
    for sequence in range(3):
        client.send(sequence, due=600 * sequence)
        client.acknowledge(sequence, 600 * sequence + 5)
    for sequence in (0, 2, 1):
        client.receive(sequence, 1_300 + sequence)
    tally = client.close_minute()
    assert tally.out_of_order == 1
    assert len(tally.e2e_us) == 3


def test_latencies_count_from_the_scheduled_send_and_include_schedule_lag(client: TrackerBench) -> None:
    client.send(0, lag=80)
    client.acknowledge(0, 90)
    client.receive(0, 95)
    tally = client.close_minute()
    assert (tally.ack_us, tally.e2e_us, tally.lag_us) == ((90_000,), (95_000,), (80_000,))


def test_a_probe_belongs_to_the_minute_it_was_due_in(client: TrackerBench) -> None:
    client.send(0, due=59_900)
    client.send(1, due=60_500)
    client.acknowledge(0, 60_600)
    client.receive(0, 61_000)
    assert client.closable_minutes(2) == [0]
    assert client.close_minute(0).attempted == 1
    assert list(client.tracker.open_minutes()) == [1]


def test_a_leader_probe_that_is_reported_twice_is_decided_once(leader: TrackerBench) -> None:
    leader.route(0, HOME)
    leader.send(0, due=10)
    leader.acknowledge(0, 15)
    leader.fail(0, 20)
    leader.route(1_000, HOME)
    tally = leader.close_minute()
    assert (tally.attempted, tally.acknowledged) == (1, 0)
    assert tally.produce_failures == {"MSG_TIMED_OUT": 1}


def test_reports_on_unknown_probes_and_closed_minutes_are_ignored(client: TrackerBench) -> None:
    client.receive(4, 10)
    client.acknowledge(4, 10)
    client.send(0)
    client.fail(0, 10)
    client.close_minute()
    client.receive(0, 20)
    client.acknowledge(0, 20)
    assert list(client.tracker.open_minutes()) == []


# The leader leg ----------------------------------------------------------------


def test_a_leader_acknowledgement_waits_for_a_routing_report_not_older_than_itself(
    leader: TrackerBench,
) -> None:
    leader.send(0, due=1_000)
    leader.acknowledge(0, 1_005)
    leader.route(1_004, HOME)
    assert leader.closable_minutes() == []
    leader.route(1_005, HOME)
    tally = leader.close_minute()
    assert (tally.attempted, tally.acknowledged, tally.ack_us) == (1, 1, (5_000,))
    assert (tally.received, tally.e2e_us) == (0, ())


@pytest.mark.parametrize(
    ("eligibility", "failures"),
    [(LeaderEligibility.UNHEALTHY, {NOT_LEADING: 1}), (LeaderEligibility.EXCUSED, {})],
)
def test_leadership_lost_before_the_acknowledgement_fails_an_unhealthy_home_and_withdraws_an_excused_one(
    leader: TrackerBench, eligibility: LeaderEligibility, failures: dict[str, int]
) -> None:
    leader.send(0)
    leader.acknowledge(0, 3_000)
    leader.route(3_500, OTHER, eligibility)
    tally = leader.close_minute()
    assert tally.produce_failures == failures
    assert tally.attempted == sum(failures.values())
    assert (tally.acknowledged, tally.ack_us) == (0, ())


def test_an_acknowledgement_across_a_loss_and_return_of_leadership_does_not_count(
    leader: TrackerBench,
) -> None:
    leader.send(0)
    leader.route(1_000, OTHER)
    leader.route(2_000, HOME)
    leader.acknowledge(0, 2_500)
    leader.route(3_000, HOME)
    assert leader.close_minute().attempted == 0


def test_an_acknowledgement_does_not_count_if_leadership_changes_before_its_confirmation(
    leader: TrackerBench,
) -> None:
    leader.send(0)
    leader.acknowledge(0, 900)
    leader.route(800, OTHER)
    leader.route(1_000, HOME)
    assert leader.close_minute().attempted == 0


def test_a_home_that_leads_again_is_measured_by_the_probes_sent_from_then_on(leader: TrackerBench) -> None:
    leader.route(1_000, OTHER)
    leader.route(2_000, HOME)
    leader.send(0, due=2_100)
    leader.acknowledge(0, 2_105)
    leader.route(3_000, HOME)
    tally = leader.close_minute()
    assert tally.ack_us == (5_000,)
    assert tally.led_by == (HOME,)


def test_a_leader_probe_expires_without_a_report(leader: TrackerBench) -> None:
    leader.send(0)
    leader.expire_overdue(5_000)
    assert leader.closable_minutes() == []
    leader.expire_overdue(8_001)
    assert leader.close_minute().produce_failures == {NO_REPORT: 1}


def test_a_leader_acknowledgement_after_five_seconds_is_late(leader: TrackerBench) -> None:
    leader.send(0)
    leader.acknowledge(0, 5_001)
    leader.route(6_000, HOME)
    tally = leader.close_minute()
    assert tally.produce_failures == {ACK_LATE: 1}
    assert tally.acknowledged == 0


@pytest.mark.parametrize(("last_leader", "attempted"), [(HOME, 1), (OTHER, 0)])
def test_without_a_newer_routing_report_the_last_one_decides_at_the_deadline(
    leader: TrackerBench, last_leader: int, attempted: int
) -> None:
    leader.route(10, last_leader)
    leader.send(0, due=20)
    leader.acknowledge(0, 30)
    leader.expire_overdue(8_021)
    assert leader.close_minute().attempted == attempted


def test_a_routing_report_after_the_decision_changes_nothing(leader: TrackerBench) -> None:
    leader.send(0)
    leader.acknowledge(0, 10)
    leader.expire_overdue(8_001)
    leader.route(9_000, OTHER, LeaderEligibility.UNHEALTHY)
    assert leader.close_minute().ack_us == (10_000,)


def test_a_probe_to_an_unhealthy_home_fails_at_once_without_being_sent(leader: TrackerBench) -> None:
    leader.route(10, OTHER, LeaderEligibility.UNHEALTHY)
    leader.tracker.record_unsent_failure(0, 20 * MS, 23 * MS, 0)
    assert leader.closable_minutes() == [0]
    tally = leader.close_minute()
    assert tally.produce_failures == {NOT_LEADING: 1}
    assert (tally.attempted, tally.lag_us) == (1, (3_000,))


def test_the_tracker_reports_whether_the_home_leads() -> None:
    bench = TrackerBench(Leg.LEADER, leader=None)
    assert not bench.tracker.leads
    bench.route(1, HOME)
    assert bench.tracker.leads
    bench.route(2, OTHER)
    assert not bench.tracker.leads
    bench.route(3, None)
    assert not bench.tracker.leads


# Minutes -----------------------------------------------------------------------


def test_a_minute_in_which_nothing_was_due_is_recorded_empty(leader: TrackerBench) -> None:
    assert leader.closable_minutes() == [0]
    tally = leader.close_minute()
    assert tally.attempted == 0
    assert_invariants(tally, Leg.LEADER)


def test_the_current_minute_cannot_be_closed(client: TrackerBench) -> None:
    assert client.closable_minutes(0) == []


def test_minutes_are_listed_oldest_first(client: TrackerBench) -> None:
    for minute in (3, 1, 2):
        client.tracker.open_minute(minute)
    assert client.closable_minutes(3) == [0, 1, 2]
    assert list(client.tracker.open_minutes()) == [0, 1, 2, 3]


def test_opening_a_minute_again_keeps_its_counts(client: TrackerBench) -> None:
    client.send(0)
    client.receive(0, 1)
    client.receive(0, 2)
    client.tracker.open_minute(0)
    client.acknowledge(0, 3)
    assert client.close_minute().duplicated == 1


def test_an_open_minute_can_be_tallied_before_it_is_closed(client: TrackerBench) -> None:
    for sequence in range(3):
        client.send(sequence, 600 * sequence)
    client.acknowledge(0, 5)
    client.receive(0, 9)
    interim = client.tracker.tally_minute(0)
    assert (interim.attempted, interim.e2e_us) == (1, (9_000,))
    client.acknowledge(1, 605)
    client.receive(1, 610)
    assert client.close_minute().e2e_us == (9_000, 10_000)


def test_probes_undecided_when_their_minute_is_closed_are_not_counted(client: TrackerBench) -> None:
    client.send(0)
    client.send(1)
    client.fail(1, 5)
    tally = client.close_minute()
    assert (tally.attempted, tally.produce_failures) == (1, {"MSG_TIMED_OUT": 1})


def test_every_broker_that_led_when_a_probe_was_sent_is_recorded(client: TrackerBench) -> None:
    client.send(0)
    client.route(700, OTHER)
    client.send(1, due=1_200)
    assert client.close_minute().led_by == (HOME, OTHER)


def test_a_minute_records_the_last_leader_epoch_under_which_a_probe_was_sent(client: TrackerBench) -> None:
    for sequence, epoch in enumerate((4, 6)):
        client.tracker.record_routing(600 * sequence * MS, HOME, LeaderEligibility.LEADING, epoch)
        client.send(sequence, due=600 * sequence + 1)
    client.tracker.record_routing(59_000 * MS, OTHER, LeaderEligibility.EXCUSED, 7)
    assert client.close_minute().leader_epoch == 6


def test_a_minute_under_an_unknown_leader_has_no_epoch() -> None:
    bench = TrackerBench(Leg.CLIENT, leader=None)
    bench.send(0)
    tally = bench.close_minute()
    assert (tally.led_by, tally.leader_epoch) == ((), None)


# Pulses ------------------------------------------------------------------------


def test_a_pulse_counts_due_decided_and_outstanding_probes(client: TrackerBench) -> None:
    for sequence in range(4):
        client.send(sequence, due=600 * sequence)
    for sequence in (0, 1):
        client.acknowledge(sequence, 600 * sequence + 5)
        client.receive(sequence, 600 * sequence + 10 * (sequence + 1))
    client.fail(2, 1_900)
    pulse = client.tracker.build_pulse(3_000 * MS)
    assert (pulse.due, pulse.succeeded, pulse.failed, pulse.outstanding) == (4, 2, 1, 1)
    assert pulse.oldest_outstanding_ms == 1_200
    assert pulse.success_age_ms == 2_400
    assert (pulse.p50_us, pulse.p99_us) == (10_000, 20_000)


def test_a_pulse_before_the_first_probe_has_no_ages_and_no_quantiles(client: TrackerBench) -> None:
    pulse = client.tracker.build_pulse(1_000 * MS)
    assert (pulse.due, pulse.succeeded, pulse.failed, pulse.outstanding) == (0, 0, 0, 0)
    assert (pulse.oldest_outstanding_ms, pulse.success_age_ms, pulse.p50_us, pulse.p99_us) == (None,) * 4


def test_a_pulse_covers_fifteen_seconds_and_the_age_of_the_last_success_ever(client: TrackerBench) -> None:
    client.send(0)
    client.acknowledge(0, 5)
    client.receive(0, 10)
    client.close_minute()
    client.expire_overdue(60_000)
    pulse = client.tracker.build_pulse(60_000 * MS)
    assert (pulse.due, pulse.succeeded, pulse.p50_us) == (0, 0, None)
    assert pulse.success_age_ms == 60_000


def test_a_pulse_counts_the_probes_of_closed_minutes(client: TrackerBench) -> None:
    client.send(0, due=59_900)
    client.acknowledge(0, 59_905)
    client.receive(0, 59_910)
    client.close_minute()
    pulse = client.tracker.build_pulse(61_000 * MS)
    assert (pulse.due, pulse.succeeded) == (1, 1)


def test_a_withdrawn_probe_is_in_no_pulse(leader: TrackerBench) -> None:
    leader.send(0)
    leader.acknowledge(0, 10)
    assert leader.tracker.build_pulse(20 * MS).outstanding == 1
    leader.route(100, OTHER, LeaderEligibility.EXCUSED)
    pulse = leader.tracker.build_pulse(200 * MS)
    assert (pulse.due, pulse.succeeded, pulse.failed, pulse.outstanding) == (0, 0, 0, 0)


def test_a_pulse_of_the_leader_leg_measures_the_acknowledgement(leader: TrackerBench) -> None:
    leader.send(0)
    leader.acknowledge(0, 4)
    leader.route(900, HOME)
    pulse = leader.tracker.build_pulse(1_000 * MS)
    assert (pulse.leg, pulse.p99_us) == (Leg.LEADER, 4_000)
