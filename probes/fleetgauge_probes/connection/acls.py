"""The least rights of an agent, as what somebody who may grant them has to grant."""

from collections.abc import Iterator
from dataclasses import dataclass

from fleetgauge_probes.agent.topic_plan import TOPIC
from fleetgauge_probes.connection.rights import PROBING, REPORTING, Uses, option_name
from fleetgauge_probes.fleet import Fleet


@dataclass(frozen=True, slots=True)
class Grant:
    """Operations, in Kafka's words, on a topic, or on the cluster itself where that is None."""

    cluster: str
    bootstrap: str
    topic: str | None
    operations: tuple[str, ...]

    def command(self, principal: str) -> str:
        """What gives them, as a line for a shell."""
        operations = " ".join(f"--operation {option_name(one)}" for one in self.operations)
        resource = f"--topic {self.topic}" if self.topic else "--cluster"
        return (
            f"kafka-acls.sh --bootstrap-server {self.bootstrap} --add --allow-principal {principal} "
            f"{operations} {resource}"
        )


def grants(fleet: Fleet) -> Iterator[Grant]:
    """For the agent of that fleet, in each cluster that it measures and in the one for its records."""
    for cluster in fleet.clusters:
        yield from _on(cluster.id, cluster.bootstrap, (TOPIC,), PROBING)
    if fleet.telemetry:
        topics = fleet.telemetry.topics
        names = (topics.probe_minutes.name, topics.probe_pulse.name, topics.health_events.name)
        yield from _on("telemetry", fleet.telemetry.bootstrap, names, REPORTING)


def _on(cluster: str, bootstrap: str, topics: tuple[str, ...], uses: Uses) -> Iterator[Grant]:
    for topic in topics:
        yield Grant(cluster, bootstrap, topic, ("CREATE", *uses.topic))
    if uses.cluster:
        yield Grant(cluster, bootstrap, None, uses.cluster)
