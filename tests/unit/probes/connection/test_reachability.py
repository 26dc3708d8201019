import pytest

from fleetgauge_core.kafka import (
    Knock,
    Registration,
    Registry,
    Reply,
    Sight,
    Silence,
    Unknown,
)
from fleetgauge_probes.connection.reachability import brokers, reachable, version

UP = Reply((4, 3))


def sight(broker: int, knock: Knock = UP, rack: str | None = "z1") -> Sight:
    return Sight(f"kafka-{broker}:9092", rack, knock)


def registry(*fenced: int) -> Registry:
    return Registry("uuid", {b: Registration(b, f"kafka-{b}", 9092, "z1", b in fenced) for b in (1, 2, 3)})


def test_bootstrap_addresses_that_answer_are_named() -> None:
    check = reachable({"a:1": UP, "b:2": UP})
    assert (check.ok, check.found, check.mend) == (True, "a:1, b:2 answer", None)


def test_one_silent_address_is_a_finding_even_while_another_answers() -> None:
    check = reachable({"a:1": UP, "b:2": Silence.REFUSED})
    assert (check.ok, check.found) == (False, "a:1 answers; b:2: connection refused")
    assert check.mend == "nothing listens there: correct the port, or start the broker"


@pytest.mark.parametrize("silence", list(Silence))
def test_every_kind_of_silence_has_words_and_a_mend_of_its_own(silence: Silence) -> None:
    check = reachable({"a:1": silence})
    assert check.ok is False
    assert check.found == f"a:1: {silence.value}"
    others = {reachable({"a:1": other}).mend for other in Silence if other is not silence}
    assert check.mend
    assert check.mend not in others


def test_the_same_advice_is_given_once() -> None:
    mend = reachable({"a:1": Silence.REFUSED, "b:2": Silence.REFUSED}).mend
    assert mend == reachable({"a:1": Silence.REFUSED}).mend


def test_brokers_are_told_with_their_racks() -> None:
    check = brokers({2: sight(2, rack=None), 1: sight(1)}, registry(), frozenset())
    assert (check.ok, check.found) == (True, "1 (z1), 2 (no rack)")


def test_a_broker_that_advertises_what_cannot_be_reached_is_the_finding() -> None:
    check = brokers({1: sight(1), 2: sight(2, Silence.NO_NAME)}, registry(), frozenset())
    assert check.ok is False
    assert check.found == "1 (z1), 2 (z1); 2 advertises kafka-2:9092: no such name"
    assert check.mend == "see advertised.listeners of broker 2: it must be reachable from here"


def test_a_broker_that_hangs_is_not_blamed_on_its_listeners() -> None:
    assert brokers({1: sight(1, Silence.MUTE)}, registry(), frozenset()).mend == "broker 1 may hang"


def test_a_fenced_broker_is_a_finding_unless_it_is_retired() -> None:
    live = {1: sight(1), 2: sight(2)}
    check = brokers(live, registry(3), frozenset())
    assert (check.ok, check.mend) == (False, "start broker 3, or list it under `retired`")
    assert brokers(live, registry(3), frozenset({3})).ok


def test_a_retired_broker_need_not_answer() -> None:
    check = brokers({1: sight(1), 2: sight(2, Silence.REFUSED)}, registry(), frozenset({2}))
    assert (check.ok, check.found) == (True, "1 (z1)")


def test_a_cluster_that_answers_but_names_no_brokers_is_a_finding() -> None:
    check = brokers(Unknown("timed out"), Unknown("timed out"), frozenset())
    assert check.ok is False
    assert "timed out" in check.found
    assert "password" in (check.mend or "")


def test_brokers_are_judged_without_a_registry_too() -> None:
    assert brokers({1: sight(1)}, Unknown("late"), frozenset()).ok


@pytest.mark.parametrize(
    ("knocks", "found"),
    [
        ({1: UP, 2: UP}, "4.3"),
        ({1: UP, 2: Silence.MUTE}, "4.3"),
        ({1: UP, 2: Reply((4, 2)), 3: UP}, "4.2 on broker 2; 4.3 on broker 1 and broker 3"),
        ({1: Reply((3, 9))}, "3.9; before 4.0 a broker that is down is not listed"),
    ],
)
def test_the_version_is_what_the_answering_brokers_speak(knocks: dict[int, Knock], found: str) -> None:
    check = version({broker: sight(broker, knock) for broker, knock in knocks.items()})
    assert (check.ok, check.found) == (True, found)


@pytest.mark.parametrize("sights", [Unknown("late"), {1: sight(1, Silence.MUTE)}])
def test_without_an_answer_the_version_is_not_known_which_is_no_fault(
    sights: dict[int, Sight] | Unknown,
) -> None:
    assert version(sights).ok is None
