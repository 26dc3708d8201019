"""Settings of the burn-rate alerts, read from a fleet file."""

from fleetgauge_core.detection import BurnSettings
from fleetgauge_core.fleet import Cluster, Fleet


def latency_objective_us(fleet: Fleet, cluster: Cluster) -> int:
    """Return the cluster's latency objective in microseconds."""
    return round(fleet.objective(cluster).latency_p99_ms * 1000)


def derive_burn_settings(fleet: Fleet, cluster: Cluster) -> BurnSettings:
    """Return the objectives, burn windows and limits that apply to the cluster."""
    return BurnSettings(
        latency_objective_us=latency_objective_us(fleet, cluster),
        availability_objective=fleet.objective(cluster).availability,
        windows=fleet.burn_alerts.windows,
        agent_late_us=round(fleet.agent_late_ms * 1000),
        retired_brokers=frozenset(cluster.retired),
    )
