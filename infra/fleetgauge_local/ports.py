"""Find free loopback ports outside the range of ephemeral ports."""

import random
import socket

from fleetgauge_local.errors import LocalFleetError
from fleetgauge_local.layout import HOST

#: The default port of the dashboard.
PAGE_PORT = 8050

# Linux assigns ports from 32768 on to outgoing connections: an ephemeral connection could take the port of a
# broker while it restarts.
_LOWEST, _HIGHEST = 20000, 32767


def is_free(port: int) -> bool:
    """Return whether a listener can be opened on this loopback port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def find_free_ports(count: int, chance: random.Random) -> tuple[int, ...]:
    """Return ``count`` different free ports in random order, so that fleets that start at once differ.

    Raises: LocalFleetError when there are fewer free ports.
    """
    candidates = list(range(_LOWEST, _HIGHEST + 1))
    chance.shuffle(candidates)
    ports: list[int] = []
    for port in candidates:
        if len(ports) == count:
            break
        if is_free(port):
            ports.append(port)
    if len(ports) < count:
        raise LocalFleetError(
            f"fewer than {count} free ports between {_LOWEST} and {_HIGHEST}: end programs that listen there"
        )
    return tuple(ports)
