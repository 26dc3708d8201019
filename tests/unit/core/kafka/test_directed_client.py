"""Requests to a broker of choice: whatever the client raises is a broker that does not answer."""

from typing import Any

import pytest
from kafka.errors import IncompatibleBrokerVersion, KafkaConnectionError
from kafka.future import Future

from fleetgauge_core.fleet import NO_SECURITY, ClusterAccess
from fleetgauge_core.kafka.cluster_queries import QueryFailure
from fleetgauge_core.kafka.directed_client import DirectedClient
from fleetgauge_core.kafka.errors import KafkaUnavailableError


class FailingClient:
    """A network client whose requests fail with an error, at once or later."""

    def __init__(self, error: Exception, *, at_once: bool) -> None:
        self._error = error
        self._at_once = at_once

    def send(self, broker_id: int, request: Any) -> Future:
        if self._at_once:
            raise self._error
        return Future().failure(self._error)

    def poll(self, timeout_ms: int, future: Future | None = None) -> None:
        pass


def connect_to(client: FailingClient) -> DirectedClient:
    directed = DirectedClient(ClusterAccess("127.0.0.1:1", NO_SECURITY), "tests", 0.1)
    directed._client = client
    return directed


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize(
    "error",
    [
        KafkaConnectionError("closed"),
        OSError("https://login.example gives no token: HTTP 503"),
        RuntimeError("closed for writes"),
    ],
)
def test_an_error_of_the_client_is_one_line_about_the_broker(error: Exception, at_once: bool) -> None:
    client = connect_to(FailingClient(error, at_once=at_once))
    with pytest.raises(KafkaUnavailableError, match="broker 3: "):
        client.request(3, object())
    assert isinstance(client.request_all({3: object()})[3], QueryFailure)


def test_a_request_that_a_broker_does_not_know_is_no_lack_of_an_answer() -> None:
    client = connect_to(FailingClient(IncompatibleBrokerVersion("too old"), at_once=False))
    result = client.request(3, object())
    assert isinstance(result, QueryFailure)
    assert "too old" in result.reason


def test_without_a_connection_no_broker_answers() -> None:
    directed = DirectedClient(ClusterAccess("127.0.0.1:1", NO_SECURITY), "tests", 0.1)
    with pytest.raises(KafkaUnavailableError, match="broker 1: not connected"):
        directed.request(1, object())
