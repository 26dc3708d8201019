"""Checks whether Fleetgauge can work with a fleet from this machine.

``fleetgauge_core.kafka.inspect_clusters`` gathers the facts; pure modules evaluate them, with one or two
checks each: ``reachability``, ``certificates``, ``permissions``, ``clock`` and ``topics``.
``cluster_checks`` combines both. ``draft`` builds the fleet file that `fleetgauge init` writes.
"""

from fleetgauge_probes.connection.acls import AclGrant, list_grants
from fleetgauge_probes.connection.check import ConnectionCheck
from fleetgauge_probes.connection.cluster_checks import ClusterChecks, check_connections

__all__ = ["AclGrant", "ClusterChecks", "ConnectionCheck", "check_connections", "list_grants"]
