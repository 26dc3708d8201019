"""The topics of Fleetgauge in a running fleet, and whether their readers receive what is written to them."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from confluent_kafka.admin import AdminClient
from deltalake import DeltaTable

from fleetgauge_core.contract import Leg, LegPulse, ProbePulse
from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka import ClusterAdmin, KafkaUnavailableError
from fleetgauge_core.kafka.demotion_marks import read_demotion_marks, write_demotion_mark
from fleetgauge_core.tables import MIRROR_MINUTES, PROBE_MINUTES
from fleetgauge_local.layout import TELEMETRY
from fleetgauge_probes.agent.topic_plan import TOPIC
from tests.chaos._running_fleet import Scene
from tests.chaos._streaming import rows
from tests.topic_values import read_values
from tests.waiting import wait_until

#: From the deletion until a reader has a new record. A reader has to recognise the deletion within 30 s.
RECEIVED_WITHIN_S = 60
#: A minute is sent up to 73 s after its beginning, and a batch of three small clusters takes up to 12 s.
STORED_WITHIN_S = 150
#: The rows of a whole minute after the deletion are written up to half a minute after its end.
TRACERS_WITHIN_S = 180
DELETED_WITHIN_S = 240
MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class OwnTopic:
    """A topic of ours. ``is_received`` returns whether its reader has a record written after a time."""

    cluster: str
    name: str
    is_received: Callable[[Scene, datetime], bool]
    within_s: float = RECEIVED_WITHIN_S

    @property
    def label(self) -> str:
        return f"{self.cluster}/{self.name}"


def list_own_topics(scene: Scene) -> list[OwnTopic]:
    topics = scene.telemetry.topics
    tracers = scene.fleet.recovery.tracers if scene.fleet.recovery.mirrors else None
    return [
        *(OwnTopic(cluster.id, TOPIC, probes_of(cluster.id)) for cluster in scene.fleet.clusters),
        OwnTopic(TELEMETRY, topics.probe_pulse.name, watch_has_pulses),
        OwnTopic(TELEMETRY, topics.probe_minutes.name, lake_has_minutes, STORED_WITHIN_S),
        # Its reader gets a record when a broker hangs at the end of the round.
        OwnTopic(TELEMETRY, topics.health_events.name, lambda scene, _: has_events_topic(scene)),
        OwnTopic(TELEMETRY, topics.watch_state.name, watch_leads_with_state),
        OwnTopic(TELEMETRY, topics.demotions.name, demotions_are_stored),
        *(
            OwnTopic(source, tracers.topic, mirrors_bring_tracers(source), TRACERS_WITHIN_S)
            for source in sorted({mirror.source for mirror in scene.fleet.recovery.mirrors})
            if tracers
        ),
    ]


def probes_of(cluster: str) -> Callable[[Scene, datetime], bool]:
    """Return whether all brokers of a cluster had a successful probe on each leg after a time."""

    def is_received(scene: Scene, since: datetime) -> bool:
        return any(
            pulse.cluster_id == cluster
            and all(has_success_since(leg, pulse, since) for leg in list_legs(pulse))
            for pulse in scene.read_pulses()
            if pulse.emitted_at > since and pulse.brokers
        )

    return is_received


def list_legs(pulse: ProbePulse) -> list[LegPulse | None]:
    return [broker.leg_pulse(leg) for broker in pulse.brokers for leg in Leg]


def has_success_since(leg: LegPulse | None, pulse: ProbePulse, since: datetime) -> bool:
    if leg is None or leg.success_age_ms is None:
        return False
    return pulse.emitted_at - timedelta(milliseconds=leg.success_age_ms) > since


def watch_has_pulses(scene: Scene, since: datetime) -> bool:
    times = scene.read_metric("watch", "fleetgauge_watch_pulse_timestamp_seconds")
    return len(times) >= len(scene.fleet.clusters) and min(times.values()) > since.timestamp()


def lake_has_minutes(scene: Scene, since: datetime) -> bool:
    table = str(scene.lake / PROBE_MINUTES.path)
    if not DeltaTable.is_deltatable(table):
        return False
    # The minute of the deletion was partly measured before it, and its records are sent after it.
    minutes = DeltaTable(table).to_pyarrow_table(
        columns=["minute"], filters=[("minute", ">", since - MINUTE)]
    )
    return minutes.num_rows > 0


def has_events_topic(scene: Scene) -> bool:
    admin = AdminClient({"bootstrap.servers": scene.telemetry.bootstrap})
    return scene.telemetry.topics.health_events.name in admin.list_topics(timeout=10).topics


def watch_leads_with_state(scene: Scene, _: datetime) -> bool:
    if scene.read_metric("watch", "fleetgauge_watch_active") != {(): 1}:
        return False
    try:
        return bool(read_values(scene.telemetry.access, scene.telemetry.topics.watch_state.name))
    except KafkaUnavailableError:
        return False


def demotions_are_stored(scene: Scene, since: datetime) -> bool:
    """Mark a broker as not demoted, as the end of an action does, and read it as an agent does."""
    cluster = scene.fleet.clusters[0].id
    try:
        write_demotion_mark(scene.telemetry, cluster, 1, demoted=False, now=since)
        return read_demotion_marks(scene.telemetry, cluster) == {1: False}
    except KafkaUnavailableError:
        return False


def mirrors_bring_tracers(source: str) -> Callable[[Scene, datetime], bool]:
    """Return whether both mirrors of a source have brought tracers in a minute after a time."""

    def is_received(scene: Scene, since: datetime) -> bool:
        destinations = {
            mirror.destination for mirror in scene.fleet.recovery.mirrors if mirror.source == source
        }
        return destinations == {
            row["destination"]
            for row in rows(scene.lake, MIRROR_MINUTES, ["source", "destination", "minute", "tracers"])
            if row["source"] == source and row["minute"] > since and row["tracers"]
        }

    return is_received


def delete_topic(bootstrap: str, name: str) -> None:
    """Delete a topic, and wait until it is gone or made anew."""
    admin = ClusterAdmin(ClusterAccess(bootstrap))
    admin.start()
    before = admin.describe_topic(name)
    assert before is not None, name
    client = AdminClient({"bootstrap.servers": bootstrap})  # the future fails once the client is deleted
    client.delete_topics([name])[name].result()

    def is_gone() -> bool:
        topic = admin.describe_topic(name)
        return topic is None or topic.topic_id != before.topic_id

    wait_until(is_gone, DELETED_WITHIN_S, f"the deletion of {name}")
