"""The least rights of an agent, as what somebody who may grant them has to grant."""

from collections.abc import Iterator
from dataclasses import dataclass

from fleetgauge_probes.agent.topic_plan import TOPIC
from fleetgauge_probes.connection.rights import PROBING, REPORTING, Uses, option_name
from fleetgauge_probes.fleet import OPEN, Access, Fleet


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
        topics = fleet.telemetry.topics
        names = (topics.probe_minutes.name, topics.probe_pulse.name, topics.health_events.name)
        yield from _on("telemetry", fleet.telemetry.access, names, REPORTING)


def _on(cluster: str, access: Access, topics: tuple[str, ...], uses: Uses) -> Iterator[Grant]:
    secured = access.security != OPEN
    for topic in topics:
        yield Grant(cluster, access.bootstrap, secured, topic, ("CREATE", *uses.topic))
    if uses.cluster:
        yield Grant(cluster, access.bootstrap, secured, None, uses.cluster)
