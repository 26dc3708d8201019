from fleetgauge_probes.agent.throttles import Throttles

S = 1_000_000_000


def test_what_fails_while_it_is_held_back_or_soon_after_is_explained() -> None:
    throttles = Throttles()
    assert not throttles.explains(1, 10 * S)
    throttles.note(1, 10 * S, 2.5)
    assert throttles.explains(1, 11 * S)
    assert throttles.explains(1, 18 * S)
    assert not throttles.explains(1, 19 * S)
    assert not throttles.explains(2, 11 * S)


def test_the_time_is_told_by_broker_and_once() -> None:
    throttles = Throttles()
    throttles.note(1, 0, 0.5)
    throttles.note(1, S, 0.25)
    throttles.note(2, S, 1.0)
    assert throttles.take() == {1: 0.75, 2: 1.0}
    assert throttles.take() == {}
