"""What every room shares: records, fleet.yaml, Kafka access, SLO definitions, detection, tables."""

__version__ = "0.1.0"
