"""Free loopback ports that no outgoing connection can take."""

import random
import socket

from fleetgauge_local.errors import LocalFleetError
from fleetgauge_local.layout import HOST

#: Where the page is looked for.
PAGE_PORT = 8050

# Linux hands out ports from 32768 on to outgoing connections: a broker that restarts
# could find its own port taken there.
_LOWEST, _HIGHEST = 20000, 32767


def is_free(port: int) -> bool:
    """Whether a listener can be opened there now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def free_ports(count: int, chance: random.Random) -> tuple[int, ...]:
    """``count`` different ports; taken at random, so that fleets which start at once do not collide."""
    candidates = list(range(_LOWEST, _HIGHEST + 1))
    chance.shuffle(candidates)
    found: list[int] = []
    for port in candidates:
        if len(found) == count:
            break
        if is_free(port):
            found.append(port)
    if len(found) < count:
        raise LocalFleetError(f"no {count} free ports from {_LOWEST} to {_HIGHEST}: end what listens there")
    return tuple(found)
