"""Probes that are sent for a simulated cluster, and what becomes of their delivery reports."""

from collections import Counter

import pytest

from fleetgauge_core.contract import Leg
from fleetgauge_core.kafka import ConnectionFailure, LeaderAndEpoch, LoginSurvey
from fleetgauge_probes.agent.cluster_state import BrokerLeg
from fleetgauge_probes.agent.minute_tally import MinuteTally
from fleetgauge_probes.agent.payload import encode_payload
from fleetgauge_probes.agent.probe_receiver import ProbeReceiver
from tests.unit.probes.agent.cluster_bench import (
    ACKS_BY_LEG,
    MINUTE_NS,
    PROBE_ID,
    ClusterBench,
    FakeReader,
)

ALL_LEAD = {0: LeaderAndEpoch(1, 4), 1: LeaderAndEpoch(2, 4), 2: LeaderAndEpoch(3, 4)}


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ClusterBench:
    bench = ClusterBench(monkeypatch)
    bench.start_probing()
    return bench


def receiver_of(bench: ClusterBench) -> ProbeReceiver:
    return ProbeReceiver(PROBE_ID, bench.state, FakeReader(), bench.read_uptime_ns)  # type: ignore[arg-type]


def tally(bench: ClusterBench, broker_id: int, leg: Leg) -> MinuteTally:
    """Return the tally of minute 0, after all deadlines."""
    bench.advance(14)
    tracker = bench.state.trackers[BrokerLeg(broker_id, leg)]
    tracker.expire_overdue(bench.now_ns)
    return tracker.tally_minute(0)


def test_every_broker_gets_a_hundred_probes_a_minute_on_each_leg(bench: ClusterBench) -> None:
    bench.sender.record_routes(bench.now_ns, ALL_LEAD)
    sent = bench.send_for(60)
    counts = Counter((probe.key.broker_id, probe.key.leg) for probe in sent)
    assert counts == {(broker_id, leg): 100 for broker_id in (1, 2, 3) for leg in Leg}
    for probe in sent:
        assert probe.key.leg is not None
        assert probe.acks == ACKS_BY_LEG[probe.key.leg]
        assert probe.partition == bench.state.homes[probe.key.broker_id]


def test_sequences_of_a_leg_are_consecutive(bench: ClusterBench) -> None:
    sent = bench.send_for(6)
    sequences = [
        probe.key.sequence for probe in sent if (probe.key.broker_id, probe.key.leg) == (2, Leg.CLIENT)
    ]
    assert sequences == list(range(10))


def test_a_home_that_does_not_lead_but_responds_gets_no_leader_probes(bench: ClusterBench) -> None:
    for _ in range(6):
        bench.respond(1, 2, 3)
        sent = bench.send_for(1)
        assert {probe.key.leg for probe in sent} == {Leg.CLIENT}
    assert tally(bench, 1, Leg.LEADER).attempted == 0


def test_a_home_that_neither_leads_nor_responds_fails_without_being_probed(bench: ClusterBench) -> None:
    sent = bench.send_for(6)
    assert {probe.key.leg for probe in sent} == {Leg.CLIENT}
    leader = tally(bench, 1, Leg.LEADER)
    assert (leader.attempted, leader.produce_failures) == (10, {"NOT_LEADING": 10})


def test_an_unregistered_broker_is_not_probed_and_keeps_its_slots(bench: ClusterBench) -> None:
    home = bench.state.homes.pop(3)
    assert {probe.key.broker_id for probe in bench.send_for(3)} == {1, 2}
    bench.state.homes[3] = home
    assert {probe.key.broker_id for probe in bench.send_for(3)} == {1, 2, 3}


def test_a_client_probe_succeeds_when_it_is_acknowledged_and_received(bench: ClusterBench) -> None:
    receiver = receiver_of(bench)
    for probe in bench.send_for(3):
        probe.report(bench.now_ns, None)
        receiver.record_receipt(probe.partition, encode_payload(PROBE_ID, probe.key), bench.now_ns)
        receiver.record_receipt(0, b"a message of another client", bench.now_ns)
    client = tally(bench, 1, Leg.CLIENT)
    assert (client.attempted, client.acknowledged, len(client.e2e_us)) == (5, 5, 5)


def test_a_leader_acknowledgement_counts_after_a_routing_report_to_the_home(bench: ClusterBench) -> None:
    bench.sender.record_routes(bench.now_ns, ALL_LEAD)
    for probe in bench.send_for(3):
        probe.report(bench.now_ns, None)
    bench.sender.record_routes(bench.now_ns, ALL_LEAD | {1: LeaderAndEpoch(3, 5)})
    assert len(tally(bench, 1, Leg.LEADER).ack_us) == 5
    assert tally(bench, 2, Leg.LEADER).ack_us == ()


def test_a_time_out_is_classified_by_what_is_known_of_the_broker(bench: ClusterBench) -> None:
    bench.fail_connection(1, ConnectionFailure.CERTIFICATE_EXPIRED)
    for leg in Leg:
        bench.sender.record_throttling(leg, 2, 3.0)
    for probe in bench.send_for(3):
        probe.report(bench.now_ns, "MSG_TIMED_OUT")
    bench.state.logins = LoginSurvey(refused=frozenset({1, 2, 3}))
    for probe in bench.send_for(0.6):
        probe.report(bench.now_ns, "MSG_TIMED_OUT")
    assert tally(bench, 1, Leg.CLIENT).produce_failures.keys() == {"CERTIFICATE_EXPIRED"}
    assert tally(bench, 2, Leg.CLIENT).produce_failures == {"THROTTLED": 5, "AUTHENTICATION": 1}
    assert tally(bench, 3, Leg.CLIENT).produce_failures == {"MSG_TIMED_OUT": 5, "AUTHENTICATION": 1}


def test_no_quota_excuses_a_broker_whose_cold_connections_fail(bench: ClusterBench) -> None:
    for leg in Leg:
        bench.sender.record_throttling(leg, 2, 60.0)
    bench.fail_connection(2, ConnectionFailure.CONNECTION_REFUSED)
    for probe in bench.send_for(3):
        probe.report(bench.now_ns, "MSG_TIMED_OUT")
    assert tally(bench, 2, Leg.CLIENT).produce_failures == {"MSG_TIMED_OUT": 5}
    assert tally(bench, 2, Leg.LEADER).produce_failures == {"NOT_LEADING": 5}


def test_warm_up_messages_are_sent_on_both_legs_and_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = ClusterBench(monkeypatch)
    bench.state.adopt_topic(bench.topic(), frozenset(), bench.now_ns)
    bench.sender.send_warm_up(1, 0)
    receiver = receiver_of(bench)
    for probe in bench.sent:
        assert probe.key.leg is None
        probe.report(bench.now_ns, None)
        receiver.record_receipt(probe.partition, encode_payload(PROBE_ID, probe.key), bench.now_ns)
    assert {probe.acks for probe in bench.sent} == {"all", "1"}
    assert bench.state.warm_ups[1].is_finished(bench.now_ns)
    assert not bench.state.warm_ups[2].is_finished(bench.now_ns)


def test_a_minute_records_the_brokers_that_were_registered_at_its_first_slot(bench: ClusterBench) -> None:
    bench.send_for(1)
    del bench.state.registered[3]
    bench.send_for(60)
    assert bench.state.expected_brokers == {0: (1, 2, 3), 1: (1, 2)}
    assert bench.clock.minute_index(bench.now_ns) == 1
    assert bench.now_ns < 3 * MINUTE_NS
