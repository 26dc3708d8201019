"""Topics that are kept: with settings of their own, whatever a cluster's defaults or other clients do."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from fleetgauge_core.fleet import ClusterAccess, Telemetry
from fleetgauge_core.kafka import (
    ClusterAdmin,
    KafkaUnavailableError,
    LeaderElection,
    ProbeProducer,
    RecordProducer,
    SpoolProducer,
    TopicOffsets,
    TopicReader,
    TopicSpec,
    TracerProducer,
    build_telemetry_topic_specs,
    ensure_state_topic,
    ensure_telemetry_topics,
    inspect_clusters,
    keep_telemetry_topics,
)
from fleetgauge_core.kafka.cluster_inspection import InspectionTarget
from fleetgauge_core.metadata import find_differences
from fleetgauge_local import properties
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import ClusterSpec
from tests.waiting import wait_until

DEADLINE_S = 60
#: Settings of a cluster that would lose or reject records of a topic without settings of its own.
DEFAULTS = {
    "auto.create.topics.enable": "true",
    "log.cleanup.policy": "compact",
    "log.retention.ms": "60000",
    "log.retention.bytes": "1000",
    "log.segment.bytes": "1048576",
    "message.max.bytes": "100000",
}
LOOSE = {"cleanup.policy": "compact", "retention.ms": "604800000", "max.message.bytes": "1000"}


@pytest.fixture(scope="module")
def access(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterAccess]:
    """Run a cluster whose defaults suit no topic of ours."""
    with pytest.MonkeyPatch.context() as patched:
        for key, value in DEFAULTS.items():
            patched.setitem(properties._BEHAVIOR, key, value)
        with LocalFleet(tmp_path_factory.mktemp("fleet"), (ClusterSpec("carrier", brokers=1),)) as fleet:
            yield ClusterAccess(fleet.bootstrap("carrier"))


@pytest.fixture
def telemetry(access: ClusterAccess) -> Telemetry:
    suffix = uuid.uuid4().hex[:8]
    topics: dict[str, dict[str, object]] = {
        kind: {"name": f"{kind}-{suffix}", "partitions": 1, "retention_hours": 2}
        for kind in ("probe_minutes", "probe_pulse", "health_events")
    }
    topics["watch_state"] = {"name": f"watch-state-{suffix}"}
    return Telemetry.model_validate({"bootstrap": access.bootstrap, "topics": topics})


@pytest.fixture
def admin(access: ClusterAccess) -> ClusterAdmin:
    admin = ClusterAdmin(access)
    admin.start()
    return admin


def test_no_client_lets_the_broker_create_a_topic(access: ClusterAccess, tmp_path: Path) -> None:
    observer = AdminClient({"bootstrap.servers": access.bootstrap, "allow.auto.create.topics": False})
    failures: list[str | None] = []
    records = RecordProducer(access, "records", delivery_timeout_s=2)
    probes = ProbeProducer(access, "absent-probes", "all", lambda *_: None)
    spooled = SpoolProducer(access, "spooled")
    tracers = TracerProducer(access, "absent-tracers", "tracers")
    reader, offsets = TopicReader(access, "absent-read", "reader"), TopicOffsets(access, "offsets")
    election = LeaderElection(access, "absent-election")
    for client in (records, probes, spooled, tracers, reader, offsets, election):
        client.start()
    records.send("absent-records", "key", b"value")
    probes.send(0, b"value", lambda _, failure: failures.append(failure))
    spooled.send("absent-spooled", "key", b"value", failures.append)
    tracers.send({"header": b"value"}, lambda report: failures.append(report.failure))
    reader.assign([0])
    with pytest.raises(KafkaUnavailableError, match="absent-read"):
        reader.wait_for_partitions(1)
    assert offsets.describe_topics(["absent-described"]) == {}
    inspect_clusters([InspectionTarget(access, lambda _: [TopicSpec("absent-inspected", {}, 1, 1)])], print)

    def poll() -> bool:
        for client in (spooled, tracers, reader):
            client.poll(0.1)
        return records.failed == 1 and bool(failures)

    wait_until(poll, DEADLINE_S, "the records to fail")
    assert [name for name in observer.list_topics(timeout=10).topics if name.startswith("absent")] == []
    for stoppable in (probes, spooled, tracers, reader, election):
        stoppable.stop()
    records.stop(1)


def test_created_topics_have_settings_of_their_own(telemetry: Telemetry, admin: ClusterAdmin) -> None:
    ensure_telemetry_topics(telemetry)
    ensure_state_topic(telemetry, telemetry.topics.watch_state)
    for spec in build_telemetry_topic_specs(telemetry, 1):
        settings = admin.read_topic_settings(spec.name)
        assert spec.settings.items() <= settings.items()
        assert (settings["cleanup.policy"], settings["retention.ms"]) == ("delete", "7200000")
    assert admin.read_topic_setting(telemetry.topics.watch_state.name, "cleanup.policy") == "compact"


def test_a_topic_that_somebody_else_made_or_changed_or_deleted_is_corrected(
    telemetry: Telemetry, access: ClusterAccess, admin: ClusterAdmin, caplog: pytest.LogCaptureFixture
) -> None:
    minutes, pulse, _ = specs = build_telemetry_topic_specs(telemetry, 1)
    client = AdminClient({"bootstrap.servers": access.bootstrap, "allow.auto.create.topics": False})
    client.create_topics([NewTopic(minutes.name, 2, 1, config=LOOSE)])[minutes.name].result()

    def are_as_specified() -> bool:
        return all(
            admin.describe_topic(spec.name)
            and not find_differences(spec.settings, admin.read_topic_settings(spec.name))
            for spec in specs
        )

    stopping = Event()
    thread = Thread(target=keep_telemetry_topics(telemetry).run, args=(stopping,))
    thread.start()
    try:
        wait_until(are_as_specified, DEADLINE_S, "the settings")
        admin.set_topic_setting(pulse.name, "cleanup.policy", "compact")
        wait_until(are_as_specified, DEADLINE_S, "the changed setting")
        client.delete_topics([minutes.name, pulse.name])[pulse.name].result()
        wait_until(are_as_specified, DEADLINE_S, "the deleted topics")
    finally:
        stopping.set()
        thread.join(DEADLINE_S)
    corrected = [record.getMessage() for record in caplog.records if "corrected" in record.getMessage()]
    assert f"topic {minutes.name} had cleanup.policy=compact instead of delete: corrected" in corrected
