"""Checks whether Fleetgauge can work with a fleet from this machine.

``fleetgauge_core.kafka.inspect_clusters`` gathers the facts; pure modules evaluate them, with one or two
checks each: ``reachability``, ``certificates``, ``permissions``, ``clock`` and ``topics``.
``cluster_checks`` combines both. ``draft`` builds the fleet file that `fleetgauge init` writes.
"""
