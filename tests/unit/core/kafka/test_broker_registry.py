import socket
import threading

import pytest

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka import KafkaUnavailableError, read_broker_registry


def test_reading_the_registry_of_an_unreachable_cluster_leaks_no_thread() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    threads_before = threading.active_count()
    for _ in range(3):
        with pytest.raises(KafkaUnavailableError, match=f"127.0.0.1:{port}: connection refused") as raised:
            read_broker_registry(ClusterAccess(f"127.0.0.1:{port}"), timeout_ms=100)
        assert raised.value.reason == "refused"
    assert threading.active_count() == threads_before
