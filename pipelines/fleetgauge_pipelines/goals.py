"""What a fleet file promises of a cluster, as the fold over its minutes wants it."""

from fleetgauge_pipelines.detection import Goal
from fleetgauge_probes.fleet import Cluster, Fleet


def goal_of(fleet: Fleet, cluster: Cluster) -> Goal:
    objective = fleet.objective(cluster)
    return Goal(
        latency_us=round(objective.latency_p99_ms * 1000),
        availability=objective.availability,
        windows=fleet.burn_alerts.windows,
        agent_late_us=round(fleet.agent_late_ms * 1000),
        retired=frozenset(cluster.retired),
    )
