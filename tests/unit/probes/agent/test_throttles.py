from fleetgauge_core.contract import Leg
from fleetgauge_probes.agent.throttles import QuotaThrottles

SECOND_NS = 1_000_000_000
CLIENT, LEADER = Leg.CLIENT, Leg.LEADER


def test_the_throttled_part_of_an_interval_is_measured_once() -> None:
    throttles = QuotaThrottles()
    for at_s, seconds in ((10, 2), (11, 2), (20, 1)):
        throttles.record(1, CLIENT, at_s * SECOND_NS, seconds)
    assert throttles.measure_throttled_ns(1, CLIENT, 9 * SECOND_NS, 12 * SECOND_NS) == 2 * SECOND_NS
    assert throttles.measure_throttled_ns(1, CLIENT, 0, 30 * SECOND_NS) == 4 * SECOND_NS
    assert throttles.measure_throttled_ns(1, CLIENT, 14 * SECOND_NS, 19 * SECOND_NS) == 0
    assert throttles.measure_throttled_ns(1, LEADER, 0, 30 * SECOND_NS) == 0


def test_throttled_seconds_add_up_by_broker_and_are_drained_once() -> None:
    throttles = QuotaThrottles()
    throttles.record(1, CLIENT, 0, 0.5)
    throttles.record(1, LEADER, SECOND_NS, 0.25)
    throttles.record(2, LEADER, SECOND_NS, 1.0)
    assert throttles.drain_seconds() == {1: 0.75, 2: 1.0}
    assert throttles.drain_seconds() == {}


def test_the_clients_of_a_broker_are_throttled_apart() -> None:
    throttles = QuotaThrottles()
    throttles.record(1, None, 0, 5.0)
    assert throttles.measure_throttled_ns(1, None, 0, 9 * SECOND_NS) == 5 * SECOND_NS
    assert throttles.measure_throttled_ns(1, CLIENT, 0, 9 * SECOND_NS) == 0


def test_a_broker_that_fails_throttles_no_longer() -> None:
    throttles = QuotaThrottles()
    for broker_id in (1, 2):
        throttles.record(broker_id, CLIENT, SECOND_NS, 60.0)
    throttles.end(1, 3 * SECOND_NS)
    assert throttles.measure_throttled_ns(1, CLIENT, 0, 9 * SECOND_NS) == 2 * SECOND_NS
    assert throttles.measure_throttled_ns(2, CLIENT, 0, 9 * SECOND_NS) == 8 * SECOND_NS
    throttles.record(1, CLIENT, 5 * SECOND_NS, 1.0)
    assert throttles.measure_throttled_ns(1, CLIENT, 0, 9 * SECOND_NS) == 3 * SECOND_NS
