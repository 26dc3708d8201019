"""The quantile of every service level; the agent's pulses use the very same one."""

from fleetgauge_probes.quantile import quantile, quantile_from_bad_side, rank

__all__ = ["quantile", "quantile_from_bad_side", "rank"]
