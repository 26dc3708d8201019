"""Can Fleetgauge work with this fleet from here?

Observed by kafka.look; judged purely, a check or two a module (reach, certificates, rights, clock, topics);
trial does both.
"""

from fleetgauge_probes.connection.acls import Grant, grants
from fleetgauge_probes.connection.check import Check
from fleetgauge_probes.connection.connection_test import Findings, try_connections

__all__ = ["Check", "Findings", "Grant", "grants", "try_connections"]
