from fleetgauge_probes.agent.throttles import QuotaThrottles

SECOND_NS = 1_000_000_000


def test_throttling_explains_failures_while_it_lasts_and_shortly_afterwards() -> None:
    throttles = QuotaThrottles()
    assert not throttles.has_delayed(1, 10 * SECOND_NS)
    throttles.record(1, 10 * SECOND_NS, 2.5)
    assert throttles.has_delayed(1, 11 * SECOND_NS)
    assert throttles.has_delayed(1, 18 * SECOND_NS)
    assert not throttles.has_delayed(1, 19 * SECOND_NS)
    assert not throttles.has_delayed(2, 11 * SECOND_NS)


def test_throttled_seconds_add_up_by_broker_and_are_drained_once() -> None:
    throttles = QuotaThrottles()
    throttles.record(1, 0, 0.5)
    throttles.record(1, SECOND_NS, 0.25)
    throttles.record(2, SECOND_NS, 1.0)
    assert throttles.drain_seconds() == {1: 0.75, 2: 1.0}
    assert throttles.drain_seconds() == {}
