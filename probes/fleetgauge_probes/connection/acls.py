"""The least rights of an agent, as what somebody who may grant them has to grant."""

from collections.abc import Iterator
from dataclasses import dataclass

from fleetgauge_core.fleet import OPEN, Access, Fleet
from fleetgauge_probes.agent.topic_plan import TOPIC
from fleetgauge_probes.connection.permissions import (
    PROBING,
    REPORTING,
    Uses,
    option_name,
)

#: Where others say who leads nothing for a while.
_LISTENING = ("DESCRIBE", "READ")


@dataclass(frozen=True, slots=True)
class Grant:
    """Operations, in Kafka's words, on a topic, or on the cluster itself where that is None.

    ``secured`` where whoever gives them has to show who he is.
    """

    cluster: str
    bootstrap: str
    secured: bool
    topic: str | None
    operations: tuple[str, ...]

    def command(self, principal: str) -> str:
        """What gives them, as a line for a shell."""
        operations = " ".join(f"--operation {option_name(one)}" for one in self.operations)
        resource = f"--topic {self.topic}" if self.topic else "--cluster"
        identity = " --command-config admin.properties" if self.secured else ""
        return (
            f"kafka-acls.sh --bootstrap-server {self.bootstrap}{identity} --add "
            f"--allow-principal {principal} {operations} {resource}"
        )


def grants(fleet: Fleet) -> Iterator[Grant]:
    """For the agent of that fleet, in each cluster that it measures and in the one for its records."""
    for cluster in fleet.clusters:
        yield from _on(cluster.id, cluster.access, (TOPIC,), PROBING)
    if fleet.telemetry:
        topics, access = fleet.telemetry.topics, fleet.telemetry.access
        names = (topics.probe_minutes.name, topics.probe_pulse.name, topics.health_events.name)
        yield from _on("telemetry", access, names, REPORTING)
        yield _grant("telemetry", access, topics.demotions.name, _LISTENING)


def _on(cluster: str, access: Access, topics: tuple[str, ...], uses: Uses) -> Iterator[Grant]:
    for topic in topics:
        yield _grant(cluster, access, topic, ("CREATE", *uses.topic))
    if uses.cluster:
        yield _grant(cluster, access, None, uses.cluster)


def _grant(cluster: str, access: Access, topic: str | None, operations: tuple[str, ...]) -> Grant:
    return Grant(cluster, access.bootstrap, access.security != OPEN, topic, operations)
