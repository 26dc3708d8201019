"""Tracer records sent through mirrors, to measure replication delay and to detect replication loops."""
