"""The burn-rate settings of a cluster, derived from its fleet file."""

from fleetgauge_core.detection import BurnSettings
from fleetgauge_core.fleet import Cluster, Fleet


def derive_burn_settings(fleet: Fleet, cluster: Cluster) -> BurnSettings:
    """Return the objectives, burn windows and limits that apply to the cluster."""
    return BurnSettings(
        latency_objective_us=fleet.latency_objective_us(cluster),
        availability_objective=fleet.objective(cluster).availability,
        windows=fleet.burn_alerts.windows,
        agent_late_us=round(fleet.agent_late_ms * 1000),
        retired_brokers=frozenset(cluster.retired),
    )
