import pytest

from fleetgauge_core.contract import Leg
from fleetgauge_probes.agent.cluster_state import BrokerLeg, WarmUp
from fleetgauge_probes.agent.leader_eligibility import LeaderEligibility
from tests.unit.probes.agent.cluster_bench import SECOND_NS, ClusterBench


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
