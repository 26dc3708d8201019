import socket
import threading

import pytest

from fleetgauge_core.fleet import Access
from fleetgauge_core.kafka import KafkaUnavailableError, registered_brokers


def test_an_unreachable_cluster_costs_no_thread_each_time_it_is_asked() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    before = threading.active_count()
    for _ in range(3):
        with pytest.raises(KafkaUnavailableError, match=f"127.0.0.1:{port}"):
            registered_brokers(Access(f"127.0.0.1:{port}"), timeout_ms=100)
    assert threading.active_count() == before
