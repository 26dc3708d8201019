"""Failover of consumer groups to another region: offset translation, readiness, drills, promotion."""
