"""What a fleet file promises of a cluster, as minutes are judged by it."""

from fleetgauge_core.detection import Goal
from fleetgauge_core.fleet import Cluster, Fleet


def latency_objective_us(fleet: Fleet, cluster: Cluster) -> int:
    return round(fleet.objective(cluster).latency_p99_ms * 1000)


def goal_of(fleet: Fleet, cluster: Cluster) -> Goal:
    return Goal(
        latency_us=latency_objective_us(fleet, cluster),
        availability=fleet.objective(cluster).availability,
        windows=fleet.burn_alerts.windows,
        agent_late_us=round(fleet.agent_late_ms * 1000),
        retired=frozenset(cluster.retired),
    )
