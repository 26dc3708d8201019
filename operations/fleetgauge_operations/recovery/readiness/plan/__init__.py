"""Failover readiness computed from one observation: minute rows, rates, conditions, findings. Pure."""
