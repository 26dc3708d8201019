"""Measure every broker of a Kafka fleet through the path that clients take."""
