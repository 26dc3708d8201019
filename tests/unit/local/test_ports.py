import random
import socket

from fleetgauge_local.ports import find_free_ports, is_free


def test_ports_are_different_and_free_and_below_the_ephemeral_range() -> None:
    ports = find_free_ports(40, random.Random(7))
    assert len(set(ports)) == 40
    assert all(map(is_free, ports))
    assert max(ports) < 32768


def test_a_port_with_a_listener_is_not_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert not is_free(server.getsockname()[1])
