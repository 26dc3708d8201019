"""Free ports for tests."""

import random

from fleetgauge_local.ports import find_free_ports


def free_port() -> int:
    """Return a random free port, so that tests in two worker processes do not get the same port."""
    return find_free_ports(1, random.Random())[0]
