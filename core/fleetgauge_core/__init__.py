"""Code shared by all packages: records, fleet.yaml, Kafka access, SLO definitions, detection and tables."""

__version__ = "0.1.0"
