"""A port to listen on, or to find nobody at."""

import random

from fleetgauge_local.ports import free_ports


def free_port() -> int:
    """At random: tests of two workers do not get the same one."""
    return free_ports(1, random.Random())[0]
