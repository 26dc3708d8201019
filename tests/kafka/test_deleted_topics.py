"""An agent and a watch whose topics are all deleted while they run."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread

import yaml
from confluent_kafka.admin import AdminClient

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka import ClusterAdmin, reassign_topic
from fleetgauge_core.runtime.health_server import ProcessHealth
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_operations.watch.controller import WatchController
from fleetgauge_operations.watch.metrics import WatchMetrics
from fleetgauge_operations.watch.watched_fleet import WatchedFleet
from fleetgauge_probes.agent.topic_plan import TOPIC
from tests.exposition import samples_of
from tests.kafka.agents import Agent, build_fleet, has_successful_probes
from tests.receiver import Receiver
from tests.topic_values import read_values
from tests.waiting import wait_until

DEADLINE_S = 90
BROKERS = (1, 2, 3)
CHANGES = "fleetgauge_topic_changes_total"


@contextmanager
def running_watch(config: Path) -> Iterator[ProcessHealth]:
    health, shutdown = ProcessHealth("watch", 60), ShutdownFlag()
    watched = WatchedFleet(config, health.parts, time.monotonic)
    telemetry = watched.load()
    watch = WatchController(
        watched, telemetry, lambda: datetime.now(UTC), lambda _: None, health, WatchMetrics(health.registry)
    )
    thread = Thread(target=watch.run, args=(shutdown,))
    thread.start()
    try:
        yield health
    finally:
        shutdown.set()
        thread.join(DEADLINE_S)
    assert not thread.is_alive()


def read_pulse_time(watch: ProcessHealth) -> float:
    """Return when the last pulse that the watch received was emitted; 0 before the first."""
    return max(samples_of(watch.registry, "fleetgauge_watch_pulse_timestamp_seconds").values(), default=0)


def is_leader(watch: ProcessHealth) -> bool:
    return samples_of(watch.registry, "fleetgauge_watch_active") == {(): 1}


def delete_topics(bootstrap: str, *names: str) -> None:
    client = AdminClient({"bootstrap.servers": bootstrap})
    for future in client.delete_topics(list(names)).values():
        future.result()


def raise_leader_epochs(access: ClusterAccess, admin: ClusterAdmin) -> None:
    """Elect each broker as leader of another probe partition.

    In a topic created after that, epochs are lower; librdkafka takes metadata with such epochs for old.
    """
    topic = admin.describe_topic(TOPIC)
    assert topic is not None
    replicas = {
        number: (*partition.replicas[1:], partition.replicas[0])
        for number, partition in topic.partitions.items()
    }
    wait_until(lambda: reassign_topic(access, TOPIC, replicas), DEADLINE_S, "the reassignment before")

    def has_new_leaders() -> bool:
        admin.elect_preferred_leaders_of_topic(TOPIC, tuple(replicas))
        topic = admin.describe_topic(TOPIC)
        return topic is not None and all(
            topic.partitions[number].leader == leader for number, (leader, *_) in replicas.items()
        )

    wait_until(has_new_leaders, DEADLINE_S, "the new leaders")


def test_an_agent_and_a_watch_go_on_when_all_their_topics_are_deleted(
    local_fleet: LocalFleet, tmp_path: Path
) -> None:
    fleet, telemetry = build_fleet(local_fleet, ["orders"])
    state_topic = f"state-{telemetry.topics.probe_pulse.name}"
    topics = telemetry.topics.model_copy(
        update={"watch_state": telemetry.topics.watch_state.model_copy(update={"name": state_topic})}
    )
    telemetry = telemetry.model_copy(update={"topics": topics})
    agent = Agent(fleet, telemetry, tmp_path / "spool")
    orders = fleet.cluster("orders").access
    admin, admin_of_orders = ClusterAdmin(telemetry.access), ClusterAdmin(orders)
    admin.start()
    admin_of_orders.start()
    with Receiver().listening() as receiver:
        watched = {
            "clusters": [{"id": "orders", "bootstrap": "nobody:1"}],
            "notifiers": [{"kind": "webhook", "url": receiver.url}],
            "lake": str(tmp_path / "no-lake"),
            "telemetry": telemetry.model_dump(mode="json", exclude_defaults=True),
        }
        config = tmp_path / "fleet.yaml"
        config.write_text(yaml.safe_dump(watched))
        with agent.running(), running_watch(config) as watch:
            assert has_successful_probes(telemetry, "orders", BROKERS)
            wait_until(lambda: is_leader(watch) and read_pulse_time(watch) > 0, DEADLINE_S, "a pulse")
            *_, state = read_values(telemetry.access, state_topic)
            raise_leader_epochs(orders, admin_of_orders)
            deleted_at = datetime.now(UTC)
            delete_topics(local_fleet.bootstrap("orders"), TOPIC)
            records = (topics.probe_minutes, topics.probe_pulse, topics.health_events)
            delete_topics(telemetry.bootstrap, state_topic, *(topic.name for topic in records))

            wait_until(
                lambda: all(admin.describe_topic(topic.name) for topic in records), DEADLINE_S, "the topics"
            )
            assert has_successful_probes(telemetry, "orders", BROKERS, since=deleted_at)
            wait_until(lambda: is_leader(watch), DEADLINE_S, "the leader")
            wait_until(
                lambda: read_pulse_time(watch) > deleted_at.timestamp(),
                DEADLINE_S,
                "a pulse of the new topic",
            )
            wait_until(
                lambda: state in read_values(telemetry.access, state_topic), DEADLINE_S, "the watch's state"
            )
            assert samples_of(agent.health.registry, CHANGES)["recreated", "orders", TOPIC] >= 1

            def is_reported() -> bool:
                changed = {topic for _, _, topic in samples_of(watch.registry, CHANGES)}
                return topics.probe_pulse.name in changed

            # Two checks have to find the new topic.
            wait_until(is_reported, DEADLINE_S, "the change of the pulses' topic in the metrics")
