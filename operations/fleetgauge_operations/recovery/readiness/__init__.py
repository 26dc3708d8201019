"""Failover readiness of the fleet, evaluated every minute, and its findings."""
