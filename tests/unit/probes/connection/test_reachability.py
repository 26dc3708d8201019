import pytest

from fleetgauge_core.kafka import (
    AdvertisedBroker,
    BrokerRegistry,
    ConnectionFailure,
    EndpointProbeResult,
    EndpointResponse,
    QueryFailure,
)
from fleetgauge_core.metadata import BrokerRegistration
from fleetgauge_probes.connection.reachability import check_bootstrap, check_brokers, check_version

RESPONSE = EndpointResponse((4, 3))
REFUSED = ConnectionFailure.CONNECTION_REFUSED
NO_RESPONSE = ConnectionFailure.NO_RESPONSE


def broker(
    broker_id: int, result: EndpointProbeResult = RESPONSE, rack: str | None = "z1"
) -> AdvertisedBroker:
    return AdvertisedBroker(f"kafka-{broker_id}:9092", rack, result)


def registry(*fenced: int) -> BrokerRegistry:
    return BrokerRegistry(
        "uuid",
        {
            broker_id: BrokerRegistration(broker_id, f"kafka-{broker_id}", 9092, "z1", broker_id in fenced)
            for broker_id in (1, 2, 3)
        },
    )


def test_responding_bootstrap_addresses_are_listed() -> None:
    check = check_bootstrap({"a:1": RESPONSE, "b:2": RESPONSE})
    assert (check.ok, check.found, check.mend) == (True, "a:1, b:2 respond", None)


def test_a_failed_bootstrap_address_fails_the_check_even_if_another_responds() -> None:
    check = check_bootstrap({"a:1": RESPONSE, "b:2": REFUSED})
    assert (check.ok, check.found) == (False, f"a:1 responds; b:2: {REFUSED.description}")
    assert check.mend == "correct the port, or start the broker: nothing listens there"


@pytest.mark.parametrize("failure", list(ConnectionFailure))
def test_every_connection_failure_has_a_remedy_of_its_own(failure: ConnectionFailure) -> None:
    check = check_bootstrap({"a:1": failure})
    assert check.ok is False
    assert check.found == f"a:1: {failure.description}"
    other_remedies = {
        check_bootstrap({"a:1": other}).mend for other in ConnectionFailure if other is not failure
    }
    assert check.mend
    assert check.mend not in other_remedies


def test_the_same_remedy_is_given_once() -> None:
    remedy = check_bootstrap({"a:1": REFUSED, "b:2": REFUSED}).mend
    assert remedy == check_bootstrap({"a:1": REFUSED}).mend


def test_brokers_are_listed_with_their_racks() -> None:
    check = check_brokers({2: broker(2, rack=None), 1: broker(1)}, registry(), frozenset())
    assert (check.ok, check.found) == (True, "1 (z1), 2 (no rack)")


def test_an_unreachable_advertised_address_fails_the_check() -> None:
    not_found = ConnectionFailure.HOST_NOT_FOUND
    check = check_brokers({1: broker(1), 2: broker(2, not_found)}, registry(), frozenset())
    assert check.ok is False
    assert check.found == f"1 (z1), 2 (z1); 2 advertises kafka-2:9092: {not_found.description}"
    assert check.mend == "correct advertised.listeners of broker 2: this machine cannot connect there"


def test_a_broker_that_does_not_respond_is_not_attributed_to_its_listeners() -> None:
    check = check_brokers({1: broker(1, NO_RESPONSE)}, registry(), frozenset())
    assert check.mend == "restart broker 1 if the process hangs"


def test_a_fenced_broker_fails_the_check_unless_it_is_retired() -> None:
    live = {1: broker(1), 2: broker(2)}
    check = check_brokers(live, registry(3), frozenset())
    assert (check.ok, check.mend) == (False, "start broker 3, or list it under `retired`")
    assert check_brokers(live, registry(3), frozenset({3})).ok


def test_a_retired_broker_need_not_respond() -> None:
    check = check_brokers({1: broker(1), 2: broker(2, REFUSED)}, registry(), frozenset({2}))
    assert (check.ok, check.found) == (True, "1 (z1)")


def test_a_cluster_that_does_not_list_its_brokers_fails_the_check() -> None:
    check = check_brokers(QueryFailure("timed out"), QueryFailure("timed out"), frozenset())
    assert check.ok is False
    assert "timed out" in check.found
    assert "password" in (check.mend or "")


def test_brokers_are_checked_without_a_registry_too() -> None:
    assert check_brokers({1: broker(1)}, QueryFailure("late"), frozenset()).ok


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ({1: RESPONSE, 2: RESPONSE}, "4.3"),
        ({1: RESPONSE, 2: NO_RESPONSE}, "4.3"),
        (
            {1: RESPONSE, 2: EndpointResponse((4, 2)), 3: RESPONSE},
            "4.2 on broker 2; 4.3 on broker 1 and broker 3",
        ),
        ({1: EndpointResponse((3, 9))}, "3.9; before 4.0, a broker that is down is not listed"),
    ],
)
def test_the_version_is_that_of_the_responding_brokers(
    results: dict[int, EndpointProbeResult], message: str
) -> None:
    check = check_version({broker_id: broker(broker_id, result) for broker_id, result in results.items()})
    assert (check.ok, check.found) == (True, message)


@pytest.mark.parametrize("brokers", [QueryFailure("late"), {1: broker(1, NO_RESPONSE)}])
def test_without_a_response_the_version_is_unknown_and_not_a_failure(
    brokers: dict[int, AdvertisedBroker] | QueryFailure,
) -> None:
    assert check_version(brokers).ok is None
