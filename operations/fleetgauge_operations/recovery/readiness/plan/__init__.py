"""Failover readiness judged from one observation: minutes, rates, conditions, findings. Pure."""
