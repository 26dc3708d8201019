"""The agent on real brokers: what it makes of the probe topic, its pulses, its minutes, its end."""

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
from fleetgauge_core.runtime.cli import Address
from fleetgauge_local.fleet import LocalFleet
from tests.exposition import samples, samples_of
from tests.kafka.agents import STOPPED_S, Agent, fleet_of

CLUSTERS = ("orders", "payments")
BROKERS = (1, 2, 3)
LEGS = ("client", "leader")
KEYS = frozenset((c, b, leg) for c in CLUSTERS for b in BROKERS for leg in LEGS)
PROBE_TOPIC = "fleetgauge.probe"
MINUTE = timedelta(minutes=1)
#: Warming up, the rest of a minute, a full one, and what its last probe may take.
FULL_MINUTE_S = 160
DEADLINE_S = 30
LEFT_OUT = "fleetgauge_agent_probes_left_out_total"
QUIET = {"log_level": 0, "reconnect.backoff.max.ms": 500}

Record = dict[str, Any]
Key = tuple[str, int, str]


def _partitions(client: AdminClient | Consumer, topic: str) -> Collection[int]:
    found = client.list_topics(timeout=DEADLINE_S).topics.get(topic)
    return found.partitions if found else ()


class Reader:
    """Everything in one topic from its beginning on, in the order of arrival."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
        deadline = time.monotonic() + DEADLINE_S
        while not (partitions := _partitions(admin, topic)):
            assert time.monotonic() < deadline, f"{topic} was not made"
        self.partitions = len(partitions)
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic, **QUIET})
        # What one client knows of a topic that was just made another does not know yet.
        while len(_partitions(self._consumer, topic)) < self.partitions:
            assert time.monotonic() < deadline, f"{topic} is not known"
        self._consumer.assign([TopicPartition(topic, p, 0) for p in range(self.partitions)])
        self._topic = topic

    def poll(self, timeout_s: float) -> tuple[str, bytes] | None:
        message = self._consumer.poll(timeout_s)
        if message is None or message.error() is not None:
            return None
        return (message.key() or b"").decode(), message.value() or b""

    def rest(self) -> Iterator[tuple[str, bytes]]:
        """What is there now and was not read yet."""
        deadline = time.monotonic() + DEADLINE_S
        while self._unread():
            assert time.monotonic() < deadline
            found = self.poll(0.1)
            if found is not None:
                yield found

    def _unread(self) -> bool:
        mine = [TopicPartition(self._topic, p) for p in range(self.partitions)]
        at = {one.partition: max(0, one.offset) for one in self._consumer.position(mine)}
        return any(self._consumer.get_watermark_offsets(one)[1] > at[one.partition] for one in mine)

    def close(self) -> None:
        self._consumer.close()


@dataclass
class Run:
    """All that one agent said, from its first moment to its last."""

    fleet: Fleet
    run_id: str
    started: datetime
    stopped: datetime
    seconds_to_stop: float
    pulses: dict[str, list[ProbePulse]]
    values: list[tuple[str, bytes]]
    before_stop: int
    partitions: tuple[int, int]
    answers: dict[str, str]
    """What it said over HTTP just before its end."""
    waiting: int | None
    """How many records it left in its spool."""
    left_out: dict[str, float]
    """Probes of each cluster that told of the agent itself."""

    @property
    def records(self) -> list[Record]:
        return [PROBE_MINUTE.decode(value) for _, value in self.values]

    @property
    def by_key(self) -> dict[Key, list[Record]]:
        """Per broker and leg, in the order of minutes."""
        found: dict[Key, list[Record]] = defaultdict(list)
        for record in self.records:
            found[key_of(record)].append(record)
        return {key: sorted(records, key=lambda one: one["minute"]) for key, records in found.items()}

    @property
    def full_minutes(self) -> list[Record]:
        """Neither a key's first minute, which began before its probes did, nor one that the end cut short."""
        first = {key: records[0]["minute"] for key, records in self.by_key.items()}
        last = self.stopped.replace(second=0, microsecond=0)
        return [record for record in self.records if first[key_of(record)] < record["minute"] < last]


def key_of(record: Record) -> Key:
    return record["cluster_id"], record["broker_id"], record["leg"]


@pytest.fixture(scope="module")
def run(local_fleet: LocalFleet, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """An agent on both clusters until every broker's and leg's first full minute is there."""
    fleet, telemetry = fleet_of(local_fleet, CLUSTERS)
    agent = Agent(fleet, telemetry, tmp_path_factory.mktemp("agent") / "spool")
    started = datetime.now(UTC)
    with agent.running():
        minutes = Reader(telemetry.bootstrap, telemetry.topics.probe_minutes.name)
        pulses = Reader(telemetry.bootstrap, telemetry.topics.probe_pulse.name)
        values = list(_until_a_full_minute(minutes, agent.thread))
        before_stop = len(values)
        with agent.vitals.served(Address("127.0.0.1", 0)) as address:
            answers = {path: _get(f"http://{address}{path}") for path in ("/livez", "/readyz", "/metrics")}
        stopped, at = datetime.now(UTC), time.monotonic()
    seconds_to_stop = time.monotonic() - at
    values += minutes.rest()
    by_cluster: dict[str, list[ProbePulse]] = defaultdict(list)
    for key, value in pulses.rest():
        by_cluster[key].append(ProbePulse.decode(value))
    partitions = minutes.partitions, pulses.partitions
    minutes.close()
    pulses.close()
    return Run(
        fleet,
        str(agent.run_id),
        started,
        stopped,
        seconds_to_stop,
        by_cluster,
        values,
        before_stop,
        partitions,
        answers,
        agent.waiting,
        {cluster: count for (cluster,), count in samples_of(agent.vitals.registry, LEFT_OUT).items()},
    )


def _get(url: str) -> str:
    """The answer's text; anything but 200 raises."""
    with urlopen(url, timeout=5) as answer:
        return str(answer.read().decode())


def _until_a_full_minute(minutes: Reader, agent: threading.Thread) -> Iterator[tuple[str, bytes]]:
    first: dict[Key, datetime] = {}
    waiting = set(KEYS)
    deadline = time.monotonic() + FULL_MINUTE_S
    while waiting:
        assert time.monotonic() < deadline, f"no full minute of {sorted(waiting)}"
        assert agent.is_alive()
        found = minutes.poll(0.5)
        if found is not None:
            yield found
            record = PROBE_MINUTE.decode(found[1])
            if record["minute"] > first.setdefault(key_of(record), record["minute"]):
                waiting.discard(key_of(record))


def test_a_pulse_of_each_cluster_comes_every_five_seconds(run: Run) -> None:
    lived_s = (run.stopped - run.started).total_seconds()
    for cluster in CLUSTERS:
        pulses = run.pulses[cluster]
        assert {pulse.run_id for pulse in pulses} == {run.run_id}
        assert {pulse.vantage for pulse in pulses} == {"tests"}
        assert [pulse.sequence for pulse in pulses] == [pulses[0].sequence + n for n in range(len(pulses))]
        apart_s = (pulses[-1].emitted_at - pulses[0].emitted_at).total_seconds() / (len(pulses) - 1)
        # One may be held back where the agent itself did not run.
        assert apart_s == pytest.approx(5, abs=1.5)
        assert len(pulses) >= lived_s / 6.5 - 4


def test_pulses_say_that_every_broker_leads_is_in_sync_answers_and_acknowledges(run: Run) -> None:
    for cluster in CLUSTERS:
        last = run.pulses[cluster][-1]
        assert [broker.broker_id for broker in last.brokers] == list(BROKERS)
        for broker in last.brokers:
            assert (broker.leads, broker.in_sync, broker.fenced) == (True, True, False)
            assert broker.answer_age_ms is not None
            assert broker.answer_age_ms < 5000
            assert broker.answer_us
            # Named by its address, and without TLS.
            assert (broker.dns_us, broker.tls_us, broker.silence) == (None, None, None)
            assert broker.connect_us is not None
            assert broker.connect_us <= broker.answer_us
            for leg in Leg:
                pulse = broker.leg(leg)
                assert pulse is not None
                assert 0 < pulse.due <= last.window_ms / 600 + 2
                assert pulse.succeeded > pulse.failed
                assert pulse.p50_us is not None
                assert pulse.p99_us is not None
                assert 0 < pulse.p50_us <= pulse.p99_us


def test_each_cluster_is_begun_with_cold_once_a_minute(run: Run) -> None:
    for cluster in CLUSTERS:
        last = run.pulses[cluster][-1]
        assert (last.bootstrap_failure, run.pulses[cluster][0].bootstrap_age_ms) == (None, None)
        assert last.bootstrap_us
        assert last.bootstrap_age_ms is not None
        assert last.bootstrap_age_ms < 66_000


def test_pulses_come_before_the_first_minute_is_over(run: Run) -> None:
    for cluster in CLUSTERS:
        leading = [p for p in run.pulses[cluster] if p.brokers and all(b.leads for b in p.brokers)]
        assert (leading[0].emitted_at - run.started).total_seconds() < DEADLINE_S


def test_a_full_minute_of_every_broker_and_leg_has_its_hundred_probes(run: Run) -> None:
    full = run.full_minutes
    assert {key_of(record) for record in full} == KEYS
    for cluster in CLUSTERS:
        missing = sum(100 - record["attempted"] for record in full if record["cluster_id"] == cluster)
        assert 0 <= missing <= run.left_out[cluster]
    for record in full:
        assert record["attempted"] - 10 <= record["acknowledged"] <= 100, key_of(record)
        assert record["expected_brokers"] == list(BROKERS)
        assert record["led_by"] == [record["broker_id"]]


def test_every_record_keeps_the_contract(run: Run) -> None:
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


def test_a_sequence_is_given_once_a_run_and_names_records_in_the_order_of_their_minutes(run: Run) -> None:
    sequences = [record["sequence"] for record in run.records]
    assert sorted(sequences) == list(range(len(sequences)))
    minutes = [record["minute"] for record in sorted(run.records, key=lambda record: record["sequence"])]
    assert minutes == sorted(minutes)


def test_what_telemetry_acknowledged_waits_no_longer(run: Run) -> None:
    assert run.waiting == 0
    text = run.answers["/metrics"]
    assert samples(text, "fleetgauge_agent_spool_max_bytes") == {(): 1_000_000}
    told = samples(text, "fleetgauge_agent_records_total")
    # Of what is on its topic, that whose acknowledgement had come back.
    assert told["delivered",] >= run.before_stop - len(KEYS)
    assert told["dropped",] == 0


def test_what_a_client_feels_takes_no_less_than_the_acknowledgement_of_its_leader(run: Run) -> None:
    """All replicas and the way back are in the client's number, the home's own log in the leader's.

    The fastest of each are compared: whatever else the machine does delays the middle of either.
    """
    fastest = {
        leg: min(us for one in run.full_minutes if one["leg"] == leg for us in one[name])
        for leg, name in (("client", "e2e_us"), ("leader", "ack_us"))
    }
    assert fastest["client"] >= fastest["leader"] > 0


def test_racks_and_the_kafka_cluster_are_those_that_the_brokers_state(
    run: Run, local_fleet: LocalFleet
) -> None:
    for cluster in CLUSTERS:
        admin = AdminClient({"bootstrap.servers": local_fleet.bootstrap(cluster), **QUIET})
        described = admin.describe_cluster(request_timeout=DEADLINE_S).result()
        racks = {node.id: node.rack for node in described.nodes}
        own = [record for record in run.records if record["cluster_id"] == cluster]
        assert {record["kafka_cluster_uuid"] for record in own} == {described.cluster_id}
        assert {(record["broker_id"], record["rack"]) for record in own} == set(racks.items())


def test_the_probe_topic_has_a_partition_per_broker_with_that_broker_first_and_leading(
    run: Run, local_fleet: LocalFleet
) -> None:
    for cluster in CLUSTERS:
        admin = AdminClient({"bootstrap.servers": local_fleet.bootstrap(cluster), **QUIET})
        partitions = admin.describe_topics(TopicCollection([PROBE_TOPIC]))[PROBE_TOPIC].result().partitions
        replicas = [[node.id for node in partition.replicas] for partition in partitions]
        assert sorted(one[0] for one in replicas) == list(BROKERS)
        assert all(sorted(one) == list(BROKERS) for one in replicas)
        assert [partition.leader.id for partition in partitions] == [one[0] for one in replicas]
        resource = ConfigResource(ResourceType.TOPIC, PROBE_TOPIC)
        settings = admin.describe_configs([resource])[resource].result()
        assert settings["min.insync.replicas"].value == "2"
        assert settings["retention.ms"].value == "3600000"


def test_the_telemetry_topics_are_made_as_the_fleet_file_says(run: Run, local_fleet: LocalFleet) -> None:
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


def test_stopping_hands_over_the_open_minute_of_every_broker_and_leg(run: Run) -> None:
    handed_over = [PROBE_MINUTE.decode(value) for _, value in run.values[run.before_stop :]]
    open_minute = (run.stopped - timedelta(seconds=1)).replace(second=0, microsecond=0)
    of_it = [record for record in handed_over if record["minute"] >= open_minute]

    assert {key_of(record) for record in of_it} == KEYS
    assert all(0 < record["attempted"] < 100 for record in of_it if record["minute"] == open_minute)
    assert run.seconds_to_stop < STOPPED_S


def test_no_minute_of_a_run_is_told_twice_or_left_out(run: Run) -> None:
    assert set(run.by_key) == KEYS
    for records in run.by_key.values():
        minutes = [record["minute"] for record in records]
        assert minutes == [minutes[0] + n * MINUTE for n in range(len(minutes))]
        assert minutes[0] <= run.started.replace(second=0, microsecond=0) + MINUTE


def test_it_says_over_http_that_it_is_well_and_what_its_records_say(run: Run) -> None:
    for path in ("/livez", "/readyz"):
        said = json.loads(run.answers[path])
        assert said["status"] == "ok"
        assert 0 <= said["loop_age_s"] < 5
    text = run.answers["/metrics"]
    # Records may come between the last one read and the look.
    least, most = (_probes(run.values[:end]) for end in (run.before_stop, None))
    told = samples(text, "fleetgauge_probes_total")
    assert set(least) == set(told)
    assert all(least[key] <= value <= most[key] for key, value in told.items())
    assert len(samples(text, "fleetgauge_probe_latency_seconds")) == 2 * len(KEYS)
    assert samples(text, "fleetgauge_brokers_expected") == {(cluster,): len(BROKERS) for cluster in CLUSTERS}
    assert set(samples(text, "fleetgauge_agent_schedule_lag_seconds")) == {(one,) for one in CLUSTERS}
    pulses = samples(text, "fleetgauge_agent_pulse_timestamp_seconds")
    ages_s = {labels: run.stopped.timestamp() - at_s for labels, at_s in pulses.items()}
    assert set(ages_s) == {(cluster,) for cluster in CLUSTERS}
    assert all(0 <= age_s < 10 for age_s in ages_s.values())


def _probes(values: list[tuple[str, bytes]]) -> dict[tuple[str, ...], int]:
    """What fleetgauge_probes_total must be after these records."""
    found: dict[tuple[str, ...], int] = defaultdict(int)
    for record in (PROBE_MINUTE.decode(value) for _, value in values):
        cluster, broker, leg = key_of(record)
        succeeded = len(record["e2e_us" if leg == "client" else "ack_us"])
        found[str(broker), cluster, leg, "succeeded"] += succeeded
        found[str(broker), cluster, leg, "failed"] += record["attempted"] - succeeded
    return found
