"""Measures what an observer costs: with real brokers, with 10,000 partitions, and comparing 300 brokers."""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

import psutil

from fleetgauge_core.fleet import load_fleet
from fleetgauge_core.kafka import ClusterAdmin, TopicSpec
from fleetgauge_core.metadata import (
    ClusterObservation,
    ObservedBroker,
    ObservedLogDir,
    ObservedPartition,
    ObservedQuorum,
    ObservedSetting,
    ObservedTopic,
    SettingOrigin,
    SettingOwner,
    SettingScope,
)
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import ClusterSpec
from fleetgauge_operations.changes.plan.comparison import ObservedHistory, compare
from tests.benchmarks._measure import Figure, Options
from tests.observed import observing
from tests.waiting import let_pass

MEASURED_S = 120
TELEMETRY = ClusterSpec("telemetry", brokers=1)
PARTITIONS = 10_000
#: Of one core.
GOAL = 0.02
_START = datetime(2026, 3, 2, tzinfo=UTC)


def measure(options: Options) -> Iterator[Figure]:
    """Run all cases, or the selected ones."""
    cases: Mapping[str, Callable[[float], Iterator[Figure]]] = {
        "three": measure_three_brokers,
        "partitions": lambda seconds: measure_partitions(seconds, topics=100),
        "topics": lambda seconds: measure_partitions(seconds, topics=1_000),
        "recorded-300": lambda _: measure_comparison(brokers=300, topics=1_000, partitions=10),
    }
    for name, case in cases.items():
        if not options.only or name in options.only:
            yield from case(MEASURED_S * options.scale)


def measure_three_brokers(seconds: float) -> Iterator[Figure]:
    """Measure an observer of three real brokers."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with LocalFleet(folder / "fleet", (ClusterSpec("three"), TELEMETRY)) as local:
            yield from _measure_observer(local, folder, "three", "three real brokers", seconds)


def measure_partitions(seconds: float, topics: int) -> Iterator[Figure]:
    """Measure an observer of a real broker with 10,000 partitions of one replica; its heap is 256 MiB."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with LocalFleet(folder / "fleet", (ClusterSpec("large", brokers=1), TELEMETRY)) as local:
            create_topics(local, topics, PARTITIONS // topics)
            title = f"a broker with {PARTITIONS:,} partitions in {topics:,} topics"
            yield from _measure_observer(local, folder, "large", title, seconds, goal=GOAL)


def create_topics(local: LocalFleet, topics: int, partitions: int) -> None:
    admin = ClusterAdmin(load_fleet(local.fleet_file).cluster("large").access, 60)
    admin.start()
    for number in range(topics):
        admin.create_topic(TopicSpec(f"topic-{number}", {}, partitions, 1))


def _measure_observer(
    local: LocalFleet, folder: Path, cluster_id: str, title: str, seconds: float, goal: float | None = None
) -> Iterator[Figure]:
    with observing(local, folder / "observer", cluster_id) as observed:
        observed.wait_for_look()
        process = psutil.Process(observed.process.pid)
        started_s, before = time.monotonic(), process.cpu_times()
        let_pass(started_s + seconds)
        after, elapsed_s = process.cpu_times(), time.monotonic() - started_s
        used_s = after.user + after.system - before.user - before.system
        yield Figure(f"observer: {title}: share of a core", used_s / elapsed_s, "", goal)
        yield Figure(f"observer: {title}: memory", process.memory_info().rss / 1e6, "MB")


def measure_comparison(brokers: int, topics: int, partitions: int) -> Iterator[Figure]:
    """Measure the pure comparison of two looks at a large cluster, in which a broker was fenced."""
    first = build_observation(brokers, topics, partitions)
    history, _ = compare(ObservedHistory(), first)
    registered = dict(first.brokers or {})
    fenced = {**registered, 1: registered[1]._replace(is_fenced=True)}
    durations = []
    for number in range(1, 8):
        at = _START + timedelta(seconds=15 * number)
        look = replace(first, at=at, began_at=at, brokers=fenced if number % 2 else registered)
        began_s = time.perf_counter()
        history, changes = compare(history, look)
        durations.append(time.perf_counter() - began_s)
        assert len(changes) == 1
    title = f"{brokers} recorded brokers, {topics * partitions:,} partitions: a comparison"
    yield Figure(f"observer: {title}", 1000 * median(durations), "ms")


def build_observation(brokers: int, topics: int, partitions: int) -> ClusterObservation:
    """Return a look at a large cluster; its parts are new objects, as those of each look are."""
    ids = range(1, brokers + 1)
    settings = {
        f"setting.{number}": ObservedSetting("1", SettingOrigin.INHERITED, False) for number in range(300)
    }
    return ClusterObservation(
        _START,
        _START,
        "uuid",
        asked_broker=1,
        brokers={number: ObservedBroker(f"host-{number}", 9092, f"z{number % 3}", False) for number in ids},
        topics={
            f"topic-{topic}": ObservedTopic(
                f"id-{topic}",
                {
                    number: _build_partition(topic * partitions + number, brokers)
                    for number in range(partitions)
                },
            )
            for topic in range(topics)
        },
        moves={},
        quorum=ObservedQuorum(1, 1, frozenset({1, 2, 3}), {}),
        feature_levels={"metadata.version": 30},
        settings={
            **{SettingOwner(SettingScope.BROKER, str(number)): dict(settings) for number in ids},
            **{
                SettingOwner(SettingScope.TOPIC, f"topic-{topic}"): dict(list(settings.items())[:35])
                for topic in range(topics)
            },
        },
        quotas={},
        acls=frozenset(),
        log_dirs={number: {"/data": ObservedLogDir(False, False)} for number in ids},
    )


def _build_partition(number: int, brokers: int) -> ObservedPartition:
    replicas = tuple((number + offset) % brokers + 1 for offset in range(3))
    return ObservedPartition(replicas[0], 1, replicas, tuple(sorted(replicas)))
