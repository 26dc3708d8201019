"""Tests of mitigation on a cluster of real brokers that they share."""
