"""Leadership of a cluster's actions: a single process of the fleet changes a cluster at a time."""

from collections.abc import Iterator
from contextlib import contextmanager

from fleetgauge_core.errors import OperationalError
from fleetgauge_core.fleet import Telemetry
from fleetgauge_core.fleet.rights import ACTION_GROUP
from fleetgauge_core.kafka import LeaderElection, Leadership, ensure_state_topic

#: Longer than the session of a killed leader, which expires after 6 s.
_LEADERSHIP_TIMEOUT_S = 15


class LeadershipTakenError(OperationalError):
    """This process was not elected leader of the actions on a cluster."""


@contextmanager
def hold_cluster_leadership(telemetry: Telemetry, cluster_id: str) -> Iterator[Leadership]:
    """Hold the leadership that lets this process, and no other one, act on a cluster.

    Each cluster has its own, so that an action that takes minutes does not delay actions on other clusters.

    Raises: KafkaUnavailableError; LeadershipTakenError if this process is not elected in time.
    """
    group = f"{ACTION_GROUP}.{cluster_id}"
    ensure_state_topic(telemetry, telemetry.topics.watch_state)
    election = LeaderElection(telemetry.access, telemetry.topics.watch_state.name, group)
    election.start()
    try:
        leadership = election.wait_for_leadership(_LEADERSHIP_TIMEOUT_S)
        if leadership is None:
            raise LeadershipTakenError(
                f"not elected leader of the consumer group {group} within {_LEADERSHIP_TIMEOUT_S} s: another "
                "process is leader, or this one may not join the group"
            )
        yield leadership
    finally:
        election.stop()
