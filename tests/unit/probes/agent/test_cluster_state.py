import pytest

from fleetgauge_core.contract import Leg
from fleetgauge_core.contract.failure_codes import AgentFault
from fleetgauge_core.kafka import ConnectionFailure
from fleetgauge_probes.agent import agent_faults
from fleetgauge_probes.agent.agent_faults import ProbeFailure
from fleetgauge_probes.agent.cluster_state import BrokerLeg, WarmUp
from fleetgauge_probes.agent.leader_eligibility import LeaderEligibility
from fleetgauge_probes.agent.probe_receiver import ProbeReceiver
from tests.unit.probes.agent.cluster_bench import PROBE_ID, SECOND_NS, ClusterBench, FakeReader


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ClusterBench:
    return ClusterBench(monkeypatch)


def test_a_warm_up_finishes_when_every_leg_works_or_after_ten_seconds() -> None:
    warm_up = WarmUp(since_ns=0)
    assert not warm_up.is_finished(SECOND_NS)
    warm_up.acknowledged |= set(Leg)
    assert not warm_up.is_finished(SECOND_NS)
    warm_up.received = True
    assert warm_up.is_finished(SECOND_NS)
    assert not WarmUp(since_ns=0).is_finished(10 * SECOND_NS)
    assert WarmUp(since_ns=0).is_finished(10 * SECOND_NS + 1)


def test_brokers_are_scheduled_on_both_legs_after_their_warm_up(bench: ClusterBench) -> None:
    bench.state.adopt_topic(bench.topic(), frozenset(), bench.now_ns)
    assert bench.state.homes == {1: 0, 2: 1, 3: 2}
    assert (bench.state.warm_ups.keys(), bench.legs()) == ({1, 2, 3}, ())
    bench.state.warm_ups[2] = WarmUp(bench.now_ns, set(Leg), received=True)
    bench.state.adopt_topic(bench.topic(), frozenset(), bench.now_ns)
    assert bench.state.warm_ups.keys() == {1, 3}
    assert bench.legs() == (BrokerLeg(2, Leg.CLIENT), BrokerLeg(2, Leg.LEADER))


def test_a_broker_that_is_not_registered_has_no_home(bench: ClusterBench) -> None:
    del bench.state.registered[3]
    bench.state.adopt_topic(bench.topic(), frozenset(), bench.now_ns)
    assert bench.state.homes == {1: 0, 2: 1}


def test_a_topic_that_was_recreated_has_its_own_partitions_alone(bench: ClusterBench) -> None:
    bench.state.adopt_topic(bench.topic(), frozenset(), bench.now_ns)
    bench.state.adopt_topic(None, frozenset(), bench.now_ns)
    assert bench.state.homes == {1: 0, 2: 1, 3: 2}
    bench.state.adopt_topic(bench.topic(partitions=2), frozenset(), bench.now_ns)
    assert bench.state.homes == {1: 0, 2: 1, 3: 2}
    bench.state.adopt_topic(bench.topic("second", partitions=2), frozenset(), bench.now_ns)
    assert bench.state.homes == {1: 0, 2: 1}


def test_a_home_is_assessed_by_its_isr_and_its_cold_connections(bench: ClusterBench) -> None:
    bench.state.adopt_topic(bench.topic(), frozenset(), bench.now_ns)
    assert bench.state.assess_home(1, leads=True, now_ns=bench.now_ns) is LeaderEligibility.LEADING
    assert bench.state.assess_home(1, leads=False, now_ns=bench.now_ns) is LeaderEligibility.UNHEALTHY
    bench.respond(1)
    assert bench.state.assess_home(1, leads=False, now_ns=bench.now_ns) is LeaderEligibility.EXCUSED


def test_the_lock_is_held_for_each_element_and_released_in_between(bench: ClusterBench) -> None:
    iterator = bench.state.iterate_locked(range(25))
    for number in iterator:
        assert bench.state.lock.locked()
        if number == 24:
            break
    iterator.close()
    assert not bench.state.lock.locked()
    assert list(bench.state.iterate_locked(range(25))) == list(range(25))


def test_faults_are_collected_and_logged_without_the_lock(
    bench: ClusterBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log that blocks must not keep a probe from being sent."""
    probe = bench.create_probe()
    state = probe._state
    for broker_id, broker in bench.state.registered.items():
        state.registered[broker_id] = broker
        state.record_connection(broker, ConnectionFailure.OWN_RESOURCES, bench.attempt_time())
    held: list[bool] = []
    monkeypatch.setattr(agent_faults._log, "error", lambda *_: held.append(state.lock.locked()))
    assert probe.collect_report().agent_faults == {AgentFault.HOST}
    assert held == [False]


def test_only_what_is_overdue_or_refused_is_reviewed(
    bench: ClusterBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.start_probing()
    bench.send_for(1)
    reviewed: list[BrokerLeg] = []
    review_fetches = bench.state.review_fetches

    def review(broker_leg: BrokerLeg, now_ns: int) -> ProbeFailure:
        reviewed.append(broker_leg)
        return review_fetches(broker_leg, now_ns)

    monkeypatch.setattr(bench.state, "review_fetches", review)
    for broker_leg in bench.legs():
        bench.state.expire_overdue(broker_leg, bench.now_ns)
    assert reviewed == []
    bench.state.record_fetch(1, bench.now_ns, "TOPIC_AUTHORIZATION_FAILED")
    reviewed.clear()
    bench.state.expire_overdue(BrokerLeg(2, Leg.CLIENT), bench.now_ns)
    bench.state.expire_overdue(BrokerLeg(1, Leg.CLIENT), bench.now_ns + 14 * SECOND_NS)
    assert reviewed == [BrokerLeg(2, Leg.CLIENT), BrokerLeg(1, Leg.CLIENT)]


def test_a_record_of_another_agent_shows_that_its_partition_can_be_read(bench: ClusterBench) -> None:
    bench.start_probing()
    receiver = ProbeReceiver(PROBE_ID, bench.state, FakeReader(), bench.read_uptime_ns)  # type: ignore[arg-type]
    for partition in range(3):
        bench.state.record_fetch(partition, bench.now_ns, "TOPIC_AUTHORIZATION_FAILED")
        receiver.record_receipt(partition, b"another agent's", bench.now_ns)
    not_received = bench.state.review_fetches(BrokerLeg(1, Leg.CLIENT), bench.now_ns)
    assert not_received == ProbeFailure("NOT_RECEIVED")
