"""Measure every broker of a Kafka fleet the way a client feels it."""

__version__ = "0.1.0"
