"""The agent on real brokers: its probe topic, pulses, probe minutes, HTTP endpoints and shutdown."""

import json
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.request import urlopen

import pytest
from confluent_kafka import Consumer, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from fleetgauge_core.contract import (
    MAX_RECORD_BYTES,
    PROBE_MINUTE,
    Leg,
    ProbePulse,
)
from fleetgauge_core.fleet import Fleet
from fleetgauge_core.runtime.cli import ListenAddress
from fleetgauge_local.fleet import LocalFleet
from tests.exposition import samples, samples_of
from tests.kafka.agents import STOP_TIMEOUT_S, Agent, build_fleet

CLUSTERS = ("orders", "payments")
BROKERS = (1, 2, 3)
LEGS = ("client", "leader")
KEYS = frozenset((c, b, leg) for c in CLUSTERS for b in BROKERS for leg in LEGS)
PROBE_TOPIC = "fleetgauge.probe"
MINUTE = timedelta(minutes=1)
#: The warm-up, the rest of a minute, a full minute, and the time-out of its last probe.
FULL_MINUTE_S = 160
DEADLINE_S = 30
LEFT_OUT_METRIC = "fleetgauge_agent_probes_left_out_total"
QUIET = {"log_level": 0, "reconnect.backoff.max.ms": 500}

Record = dict[str, Any]
Key = tuple[str, int, str]


def _partitions(client: AdminClient | Consumer, topic: str) -> Collection[int]:
    metadata = client.list_topics(timeout=DEADLINE_S).topics.get(topic)
    return metadata.partitions if metadata else ()


class TopicRecordReader:
    """Reads a topic from its beginning, in the order of arrival."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
        deadline = time.monotonic() + DEADLINE_S
        while not (partitions := _partitions(admin, topic)):
            assert time.monotonic() < deadline, f"topic {topic} was not created"
        self.partitions = len(partitions)
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic, **QUIET})
        # Each client learns of a new topic at its own next metadata refresh.
        while len(_partitions(self._consumer, topic)) < self.partitions:
            assert time.monotonic() < deadline, f"the consumer does not know topic {topic}"
        self._consumer.assign([TopicPartition(topic, p, 0) for p in range(self.partitions)])
        self._topic = topic

    def poll(self, timeout_s: float) -> tuple[str, bytes] | None:
        message = self._consumer.poll(timeout_s)
        if message is None or message.error() is not None:
            return None
        return (message.key() or b"").decode(), message.value() or b""

    def read_rest(self) -> Iterator[tuple[str, bytes]]:
        """Yield the records up to the present end of the topic that were not read yet."""
        deadline = time.monotonic() + DEADLINE_S
        while self._has_unread_records():
            assert time.monotonic() < deadline
            record = self.poll(0.1)
            if record is not None:
                yield record

    def _has_unread_records(self) -> bool:
        partitions = [TopicPartition(self._topic, number) for number in range(self.partitions)]
        positions = {
            position.partition: max(0, position.offset) for position in self._consumer.position(partitions)
        }
        return any(
            self._consumer.get_watermark_offsets(partition)[1] > positions[partition.partition]
            for partition in partitions
        )

    def close(self) -> None:
        self._consumer.close()


@dataclass
class AgentRun:
    """Everything that an agent published during its run."""

    fleet: Fleet
    run_id: str
    started: datetime
    stopped: datetime
    seconds_to_stop: float
    pulses: dict[str, list[ProbePulse]]
    values: list[tuple[str, bytes]]
    records_before_stop: int
    partitions: tuple[int, int]
    http_responses: dict[str, str]
    """The bodies of its HTTP endpoints just before the stop, by path."""
    unsent_records: int | None
    """Records left in its spool."""
    left_out: dict[str, float]
    """Probes that were excluded because the agent itself was late, by cluster."""

    @property
    def records(self) -> list[Record]:
        return [PROBE_MINUTE.decode(value) for _, value in self.values]

    @property
    def by_key(self) -> dict[Key, list[Record]]:
        """The records of each broker and leg, ordered by minute."""
        records_by_key: dict[Key, list[Record]] = defaultdict(list)
        for record in sorted(self.records, key=lambda record: record["minute"]):
            records_by_key[get_key(record)].append(record)
        return records_by_key

    @property
    def full_minutes(self) -> list[Record]:
        """The records without each key's first minute and without the minute that the stop cut short."""
        first = {key: records[0]["minute"] for key, records in self.by_key.items()}
        last = self.stopped.replace(second=0, microsecond=0)
        return [record for record in self.records if first[get_key(record)] < record["minute"] < last]


def get_key(record: Record) -> Key:
    return record["cluster_id"], record["broker_id"], record["leg"]


@pytest.fixture(scope="module")
def run(local_fleet: LocalFleet, tmp_path_factory: pytest.TempPathFactory) -> AgentRun:
    """Run an agent on both clusters until the first full minute of every broker and leg is published."""
    fleet, telemetry = build_fleet(local_fleet, CLUSTERS)
    agent = Agent(fleet, telemetry, tmp_path_factory.mktemp("agent") / "spool")
    started = datetime.now(UTC)
    with agent.running():
        minutes = TopicRecordReader(telemetry.bootstrap, telemetry.topics.probe_minutes.name)
        pulses = TopicRecordReader(telemetry.bootstrap, telemetry.topics.probe_pulse.name)
        values = list(_read_until_full_minute(minutes, agent.thread))
        records_before_stop = len(values)
        with agent.health.serve(ListenAddress("127.0.0.1", 0)) as address:
            http_responses = {
                path: _get(f"http://{address}{path}") for path in ("/livez", "/readyz", "/metrics")
            }
        stopped, stop_began_s = datetime.now(UTC), time.monotonic()
    seconds_to_stop = time.monotonic() - stop_began_s
    values += minutes.read_rest()
    by_cluster: dict[str, list[ProbePulse]] = defaultdict(list)
    for key, value in pulses.read_rest():
        by_cluster[key].append(ProbePulse.decode(value))
    partitions = minutes.partitions, pulses.partitions
    minutes.close()
    pulses.close()
    return AgentRun(
        fleet,
        str(agent.run_id),
        started,
        stopped,
        seconds_to_stop,
        by_cluster,
        values,
        records_before_stop,
        partitions,
        http_responses,
        agent.unsent_records,
        {cluster: count for (cluster,), count in samples_of(agent.health.registry, LEFT_OUT_METRIC).items()},
    )


def _get(url: str) -> str:
    """Return the response body. Raises: HTTPError for a status other than 200."""
    with urlopen(url, timeout=5) as response:
        return str(response.read().decode())


def _read_until_full_minute(
    minutes: TopicRecordReader, agent: threading.Thread
) -> Iterator[tuple[str, bytes]]:
    first: dict[Key, datetime] = {}
    missing = set(KEYS)
    deadline = time.monotonic() + FULL_MINUTE_S
    while missing:
        assert time.monotonic() < deadline, f"no full minute of {sorted(missing)}"
        assert agent.is_alive()
        message = minutes.poll(0.5)
        if message is not None:
            yield message
            record = PROBE_MINUTE.decode(message[1])
            if record["minute"] > first.setdefault(get_key(record), record["minute"]):
                missing.discard(get_key(record))


def test_each_cluster_has_a_pulse_every_five_seconds(run: AgentRun) -> None:
    run_s = (run.stopped - run.started).total_seconds()
    for cluster in CLUSTERS:
        pulses = run.pulses[cluster]
        assert {pulse.run_id for pulse in pulses} == {run.run_id}
        assert {pulse.vantage for pulse in pulses} == {"tests"}
        assert [pulse.sequence for pulse in pulses] == [pulses[0].sequence + n for n in range(len(pulses))]
        interval_s = (pulses[-1].emitted_at - pulses[0].emitted_at).total_seconds() / (len(pulses) - 1)
        # A pause of the agent's process delays a pulse.
        assert interval_s == pytest.approx(5, abs=1.5)
        assert len(pulses) >= run_s / 6.5 - 4


def test_the_pulses_report_every_broker_as_leading_in_sync_and_acknowledging(run: AgentRun) -> None:
    for cluster in CLUSTERS:
        last = run.pulses[cluster][-1]
        assert [broker.broker_id for broker in last.brokers] == list(BROKERS)
        for broker in last.brokers:
            assert (broker.leads, broker.in_sync, broker.fenced) == (True, True, False)
            assert broker.answer_age_ms is not None
            assert broker.answer_age_ms < 5000
            assert broker.answer_us
            # The broker is advertised by its IP address, without TLS.
            assert (broker.dns_us, broker.tls_us, broker.silence) == (None, None, None)
            assert broker.connect_us is not None
            assert broker.connect_us <= broker.answer_us
            for leg in Leg:
                pulse = broker.leg_pulse(leg)
                assert pulse is not None
                assert 0 < pulse.due <= last.window_ms / 600 + 2
                assert pulse.succeeded > pulse.failed
                assert pulse.p50_us is not None
                assert pulse.p99_us is not None
                assert 0 < pulse.p50_us <= pulse.p99_us


def test_each_cluster_has_a_cold_bootstrap_every_minute(run: AgentRun) -> None:
    for cluster in CLUSTERS:
        last = run.pulses[cluster][-1]
        assert (last.bootstrap_failure, run.pulses[cluster][0].bootstrap_age_ms) == (None, None)
        assert last.bootstrap_us
        assert last.bootstrap_age_ms is not None
        assert last.bootstrap_age_ms < 66_000


def test_the_first_pulse_with_all_leaders_precedes_the_end_of_the_first_minute(run: AgentRun) -> None:
    for cluster in CLUSTERS:
        leading = [p for p in run.pulses[cluster] if p.brokers and all(b.leads for b in p.brokers)]
        assert (leading[0].emitted_at - run.started).total_seconds() < DEADLINE_S


def test_a_full_minute_of_every_broker_and_leg_has_one_hundred_probes(run: AgentRun) -> None:
    full = run.full_minutes
    assert {get_key(record) for record in full} == KEYS
    for cluster in CLUSTERS:
        missing = sum(100 - record["attempted"] for record in full if record["cluster_id"] == cluster)
        assert 0 <= missing <= run.left_out[cluster]
    for record in full:
        assert record["attempted"] - 10 <= record["acknowledged"] <= 100, get_key(record)
        assert record["expected_brokers"] == list(BROKERS)
        assert record["led_by"] == [record["broker_id"]]


def test_every_record_satisfies_the_contract(run: AgentRun) -> None:
    for key, value in run.values:
        record = PROBE_MINUTE.decode(value)
        assert len(value) < MAX_RECORD_BYTES
        assert key == record["cluster_id"]
        assert record["minute"] == record["minute"].replace(second=0, microsecond=0)
        assert record["minute"] < record["emitted_at"]
        assert all((record["agent_id"], record["vantage"] == "tests", record["run_id"] == run.run_id))
        for name in ("ack_us", "e2e_us"):
            assert record[name] == sorted(record[name])
            assert min(record[name], default=0) >= 0
        failures = sum(record["produce_failures"].values()) + sum(record["consume_failures"].values())
        assert record["acknowledged"] == len(record["ack_us"]) <= record["attempted"]
        assert record["lost"] == record["consume_failures"].get("NOT_RECEIVED", 0)
        assert 0 <= record["schedule_lag_p95_us"] <= record["schedule_lag_max_us"]
        if record["leg"] == "client":
            assert len(record["e2e_us"]) <= min(record["acknowledged"], record["received"])
            assert len(record["e2e_us"]) + failures == record["attempted"]
            assert max(record["e2e_us"], default=0) <= 10_000_000
        else:
            assert (record["e2e_us"], record["received"]) == ([], 0)
            assert record["acknowledged"] + failures == record["attempted"]
        assert max(record["ack_us"], default=0) <= 5_000_000


def test_sequence_numbers_are_unique_and_ordered_by_minute(run: AgentRun) -> None:
    sequences = [record["sequence"] for record in run.records]
    assert sorted(sequences) == list(range(len(sequences)))
    minutes = [record["minute"] for record in sorted(run.records, key=lambda record: record["sequence"])]
    assert minutes == sorted(minutes)


def test_acknowledged_records_are_removed_from_the_spool(run: AgentRun) -> None:
    assert run.unsent_records == 0
    text = run.http_responses["/metrics"]
    assert samples(text, "fleetgauge_agent_spool_max_bytes") == {(): 1_000_000}
    records_total = samples(text, "fleetgauge_agent_records_total")
    # The acknowledgement of a record may arrive after the record itself was read from its topic.
    assert records_total["delivered",] >= run.records_before_stop - len(KEYS)
    assert records_total["dropped",] == 0


def test_the_fastest_client_probe_is_no_faster_than_the_fastest_leader_acknowledgement(run: AgentRun) -> None:
    """The client's latency includes all replicas and the consumer, the leader's only the leader's log.

    The minimum of each is compared, because other load on the machine delays the median of either.
    """
    fastest = {
        leg: min(us for record in run.full_minutes if record["leg"] == leg for us in record[name])
        for leg, name in (("client", "e2e_us"), ("leader", "ack_us"))
    }
    assert fastest["client"] >= fastest["leader"] > 0


def test_records_have_the_racks_and_the_cluster_id_that_the_brokers_report(
    run: AgentRun, local_fleet: LocalFleet
) -> None:
    for cluster in CLUSTERS:
        admin = AdminClient({"bootstrap.servers": local_fleet.bootstrap(cluster), **QUIET})
        described = admin.describe_cluster(request_timeout=DEADLINE_S).result()
        racks = {node.id: node.rack for node in described.nodes}
        records = [record for record in run.records if record["cluster_id"] == cluster]
        assert {record["kafka_cluster_uuid"] for record in records} == {described.cluster_id}
        assert {(record["broker_id"], record["rack"]) for record in records} == set(racks.items())


def test_the_probe_topic_has_one_partition_per_broker_led_by_its_preferred_leader(
    run: AgentRun, local_fleet: LocalFleet
) -> None:
    for cluster in CLUSTERS:
        admin = AdminClient({"bootstrap.servers": local_fleet.bootstrap(cluster), **QUIET})
        partitions = admin.describe_topics(TopicCollection([PROBE_TOPIC]))[PROBE_TOPIC].result().partitions
        replicas = [[node.id for node in partition.replicas] for partition in partitions]
        assert sorted(broker_ids[0] for broker_ids in replicas) == list(BROKERS)
        assert all(sorted(broker_ids) == list(BROKERS) for broker_ids in replicas)
        assert [partition.leader.id for partition in partitions] == [broker_ids[0] for broker_ids in replicas]
        resource = ConfigResource(ResourceType.TOPIC, PROBE_TOPIC)
        settings = admin.describe_configs([resource])[resource].result()
        assert settings["min.insync.replicas"].value == "2"
        assert settings["retention.ms"].value == "3600000"


def test_the_telemetry_topics_are_created_with_the_settings_of_the_fleet_file(
    run: AgentRun, local_fleet: LocalFleet
) -> None:
    assert run.partitions == (4, 2)
    assert run.fleet.telemetry is not None
    topics = run.fleet.telemetry.topics
    admin = AdminClient({"bootstrap.servers": local_fleet.bootstrap("telemetry"), **QUIET})
    resources = {
        ConfigResource(ResourceType.TOPIC, topic.name): topic
        for topic in (topics.probe_minutes, topics.probe_pulse, topics.health_events)
    }
    for resource, future in admin.describe_configs(list(resources)).items():
        hours = resources[resource].retention_hours
        assert future.result()["retention.ms"].value == str(int(hours * 3_600_000))


def test_stopping_publishes_the_open_minute_of_every_broker_and_leg(run: AgentRun) -> None:
    published_at_stop = [PROBE_MINUTE.decode(value) for _, value in run.values[run.records_before_stop :]]
    open_minute = (run.stopped - timedelta(seconds=1)).replace(second=0, microsecond=0)
    open_records = [record for record in published_at_stop if record["minute"] >= open_minute]

    assert {get_key(record) for record in open_records} == KEYS
    assert all(0 < record["attempted"] < 100 for record in open_records if record["minute"] == open_minute)
    assert run.seconds_to_stop < STOP_TIMEOUT_S


def test_every_minute_of_a_run_is_published_exactly_once(run: AgentRun) -> None:
    assert set(run.by_key) == KEYS
    for records in run.by_key.values():
        minutes = [record["minute"] for record in records]
        assert minutes == [minutes[0] + n * MINUTE for n in range(len(minutes))]
        assert minutes[0] <= run.started.replace(second=0, microsecond=0) + MINUTE


def test_the_http_endpoints_report_a_healthy_agent_with_metrics_that_match_its_records(run: AgentRun) -> None:
    for path in ("/livez", "/readyz"):
        health = json.loads(run.http_responses[path])
        assert health["status"] == "ok"
        assert 0 <= health["loop_age_s"] < 5
    text = run.http_responses["/metrics"]
    # More records may have been published between the last one read and the HTTP request.
    least, most = (_count_probes(run.values[:end]) for end in (run.records_before_stop, None))
    probes_total = samples(text, "fleetgauge_probes_total")
    assert set(least) == set(probes_total)
    assert all(least[key] <= value <= most[key] for key, value in probes_total.items())
    assert len(samples(text, "fleetgauge_probe_latency_seconds")) == 2 * len(KEYS)
    assert samples(text, "fleetgauge_brokers_expected") == {(cluster,): len(BROKERS) for cluster in CLUSTERS}
    assert set(samples(text, "fleetgauge_agent_schedule_lag_seconds")) == {(cluster,) for cluster in CLUSTERS}
    pulses = samples(text, "fleetgauge_agent_pulse_timestamp_seconds")
    ages_s = {labels: run.stopped.timestamp() - timestamp_s for labels, timestamp_s in pulses.items()}
    assert set(ages_s) == {(cluster,) for cluster in CLUSTERS}
    assert all(0 <= age_s < 10 for age_s in ages_s.values())


def _count_probes(values: list[tuple[str, bytes]]) -> dict[tuple[str, ...], int]:
    """Return the values of fleetgauge_probes_total that result from these records."""
    counts: dict[tuple[str, ...], int] = defaultdict(int)
    for record in (PROBE_MINUTE.decode(value) for _, value in values):
        cluster, broker, leg = get_key(record)
        succeeded = len(record["e2e_us" if leg == "client" else "ack_us"])
        counts[str(broker), cluster, leg, "succeeded"] += succeeded
        counts[str(broker), cluster, leg, "failed"] += record["attempted"] - succeeded
    return counts
