"""Measures the cost of one watch for a whole fleet, with real pulses and minutes on real topics.

It starts with an hour of every broker's history, like a watch that takes over.
"""

import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Any

import psutil
import yaml

from fleetgauge_core.contract import (
    PROBE_MINUTE,
    PROBE_PULSE,
    BrokerPulse,
    Leg,
    LegPulse,
    ProbeMinute,
    ProbePulse,
)
from fleetgauge_core.detection import DEFAULT_THRESHOLDS, LatencyHistoryKey, LatencyQuantiles
from fleetgauge_core.fleet import Telemetry, load_fleet
from fleetgauge_core.kafka import RecordProducer, ensure_state_topic, ensure_telemetry_topics
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import HOST, ClusterSpec
from fleetgauge_operations.watch.state_store import StateStore
from tests.benchmarks._measure import Figure, Options, read_peak_bytes
from tests.exposition import samples
from tests.ports import free_port
from tests.probe_minutes import CLIENT, MINUTE
from tests.waiting import let_pass, wait_until

MEASURED_S = 120
WARM_UP_S = 60
TIMEOUT_S = 120
PULSE_EVERY_S = 5
#: A cluster's minutes are sent with every twelfth of its pulses.
PULSES_A_MINUTE = 60 // PULSE_EVERY_S
#: Share of the minutes of a broker that have lost a probe: 99.99% availability.
LOSS_RATE = 0.01
#: Brokers of one cluster.
BROKERS = 100
VANTAGE = "bench"
PULSE_TIMESTAMP = "fleetgauge_watch_pulse_timestamp_seconds"
_MB = 1_000_000


def measure(options: Options) -> Iterator[Figure]:
    """Measure 1,000 and 20,000 brokers, or the selected number."""
    for brokers in (1_000, 20_000):
        if not options.only or str(brokers) in options.only:
            yield from _measure_watch(brokers, MEASURED_S * options.scale)


def _measure_watch(brokers: int, seconds: float) -> Iterator[Figure]:
    names = [f"cluster-{n:03}" for n in range(brokers // BROKERS)]
    with tempfile.TemporaryDirectory(prefix="fleetgauge-bench-") as folder:
        where = Path(folder)
        clusters = (ClusterSpec("idle", brokers=1), ClusterSpec("telemetry", brokers=1))
        with LocalFleet(where / "fleet", clusters) as local:
            config = where / "fleet.yaml"
            document = {
                "telemetry": {"bootstrap": local.bootstrap("telemetry")},
                "clusters": [{"id": name, "bootstrap": "nobody:1"} for name in names],
            }
            config.write_text(yaml.safe_dump(document), encoding="utf-8")
            telemetry = load_fleet(config).telemetry
            assert telemetry is not None
            _store_history(telemetry, names)
            with _send_telemetry(telemetry, names) as sent, _run_watch(where, config) as watch:
                watch.wait_for(len(names))
                let_pass(time.monotonic() + WARM_UP_S)
                cost = watch.measure_cost(seconds)
                behind = _count_minutes_behind(telemetry, dict(sent))
    name = f"a watch of {brokers} brokers in {len(names)} clusters"
    yield Figure(f"{name}: CPU", round(cost.cpu_s / cost.seconds, 4), "cores")
    yield Figure(f"{name}: memory", round(cost.memory_bytes / _MB), "MB")
    yield Figure(
        f"{name}: age of the oldest latest pulse of a cluster",
        round(cost.oldest_s, 1),
        "s",
        2 * PULSE_EVERY_S,
    )
    yield Figure(f"{name}: minutes of a cluster not counted", behind, "minutes", 2)
    yield Figure(f"{name}: CPU steal", round(100 * cost.stolen, 1), "%")


def _store_history(telemetry: Telemetry, names: list[str]) -> None:
    """Store an hour of normal latency for every broker."""
    ensure_telemetry_topics(telemetry)
    ensure_state_topic(telemetry, telemetry.topics.watch_state)
    history = (LatencyQuantiles(4_000, 12_000),) * DEFAULT_THRESHOLDS.history_blocks
    with _open_state_store(telemetry) as store:
        for name in names:
            for broker in range(1, BROKERS + 1):
                store.save_latency_history(LatencyHistoryKey(name, broker, VANTAGE), history)


def _count_minutes_behind(telemetry: Telemetry, sent: Mapping[str, int]) -> int:
    """Return the most uncounted minutes of a cluster; the newest is open until the next begins."""
    with _open_state_store(telemetry) as store:
        counted = store.restore().burn_minutes
    return max(number - len(counted.get(name, ())) for name, number in sent.items())


@contextmanager
def _open_state_store(telemetry: Telemetry) -> Iterator[StateStore]:
    store = StateStore(telemetry)
    store.start()
    try:
        yield store
    finally:
        store.stop()


@contextmanager
def _send_telemetry(telemetry: Telemetry, names: list[str]) -> Iterator[Mapping[str, int]]:
    """Send the telemetry of an agent within the block, and yield the minutes sent so far by cluster.

    Each cluster has a pulse every 5 s, and every minute the records of the two legs of its brokers; the
    clusters follow each other at equal intervals.
    """
    sent: dict[str, int] = {}
    stopping, producer, topics = Event(), RecordProducer(telemetry.access, "bench"), telemetry.topics

    def send_until_stopped() -> None:
        # Only time and sequence change: creating each record anew would take the CPU that is measured.
        pulses = [asdict(_make_pulse(name, Random(name))) for name in names]
        minutes, random = asdict(_make_minute()), Random(1)
        # An agent has the last result of a minute 13 s after its end.
        first = (datetime.now(UTC) - timedelta(seconds=73)).replace(second=0, microsecond=0)
        number, started_s = 0, time.monotonic()
        while not stopping.wait(max(0.0, started_s + number * PULSE_EVERY_S / len(names) - time.monotonic())):
            pulse, cluster = divmod(number, len(names))
            name = names[cluster]
            emitted = {"sequence": number, "emitted_at": datetime.now(UTC)}
            producer.send(topics.probe_pulse.name, name, PROBE_PULSE.encode(pulses[cluster] | emitted))
            minute, remainder = divmod(pulse - cluster % PULSES_A_MINUTE, PULSES_A_MINUTE)
            if not remainder:
                fields = {"cluster_id": name, "sequence": minute, "minute": first + minute * MINUTE}
                for record in _make_broker_minutes(minutes | fields, random):
                    producer.send(topics.probe_minutes.name, name, PROBE_MINUTE.encode(record))
                sent[name] = minute + 1
            number += 1

    producer.start()
    thread = Thread(target=send_until_stopped)
    thread.start()
    try:
        yield sent
    finally:
        stopping.set()
        thread.join()
        producer.stop()


def _make_pulse(cluster_id: str, random: Random) -> ProbePulse:
    brokers = tuple(
        _make_broker_pulse(broker, random.randrange(3_000, 6_000)) for broker in range(1, BROKERS + 1)
    )
    return ProbePulse("bench", "run", VANTAGE, cluster_id, 0, datetime.now(UTC), 1000 * 15, brokers)


def _make_broker_pulse(broker_id: int, p50_us: int) -> BrokerPulse:
    legs = tuple(
        LegPulse(leg, 25, 25, 0, 0, None, 300, p50_us, 3 * p50_us) for leg in (Leg.CLIENT, Leg.LEADER)
    )
    return BrokerPulse(broker_id, True, True, False, 500, 900, legs, None, 200, None, None)


def _make_minute() -> ProbeMinute:
    """Return a minute without failures."""
    latencies_us = tuple(sorted(Random(0).choices(range(3_000, 12_000), k=100)))
    return replace(
        CLIENT,
        vantage=VANTAGE,
        expected_brokers=tuple(range(1, BROKERS + 1)),
        acknowledged=100,
        received=100,
        ack_us=latencies_us,
        e2e_us=latencies_us,
        produce_failures={},
        consume_failures={},
        lost=0,
    )


def _make_broker_minutes(minute: Mapping[str, Any], random: Random) -> Iterator[Mapping[str, Any]]:
    """Yield both legs of each broker; in some minutes of the client leg a probe is lost."""
    for broker in range(1, BROKERS + 1):
        has_loss = random.random() < LOSS_RATE
        lost = {"received": 99, "e2e_us": minute["e2e_us"][:-1], "consume_failures": {"NOT_RECEIVED": 1}}
        yield {**minute, "broker_id": broker, **(lost if has_loss else {})}
        yield {**minute, "broker_id": broker, "leg": "leader", "e2e_us": ()}


@dataclass(frozen=True, slots=True)
class WatchCost:
    """The cost of a watch over some seconds; memory is the maximum of its life.

    ``stolen`` is the share of CPU time that the host withheld from this machine, ``oldest_s`` the greatest
    age of a cluster's latest pulse at the end.
    """

    seconds: float
    cpu_s: float
    memory_bytes: int
    stolen: float
    oldest_s: float


class RunningWatch:
    """A watch in a separate process."""

    def __init__(self, process: psutil.Popen, port: int) -> None:
        self._process = process
        self._port = port

    def wait_for(self, clusters: int) -> None:
        """Wait until the watch has received a pulse of that many clusters."""
        wait_until(
            lambda: len(self._read_pulse_times()) == clusters, TIMEOUT_S, "a pulse of every cluster", 1.0
        )

    def measure_cost(self, seconds: float) -> WatchCost:
        from_s, cpu_s = time.monotonic(), self._cpu_s()
        psutil.cpu_times_percent()
        let_pass(from_s + seconds)
        stolen = psutil.cpu_times_percent().steal / 100
        duration_s, cpu_s = time.monotonic() - from_s, self._cpu_s() - cpu_s
        oldest_s = time.time() - min(self._read_pulse_times().values())
        return WatchCost(duration_s, cpu_s, read_peak_bytes(self._process.pid), stolen, oldest_s)

    def _read_pulse_times(self) -> Mapping[tuple[str, ...], float]:
        with (
            suppress(OSError),
            urllib.request.urlopen(f"http://{HOST}:{self._port}/metrics", timeout=10) as response,
        ):
            return samples(response.read().decode(), PULSE_TIMESTAMP)
        return {}

    def _cpu_s(self) -> float:
        return sum(self._process.cpu_times()[:2])


@contextmanager
def _run_watch(folder: Path, config: Path) -> Iterator[RunningWatch]:
    port = free_port()
    command = (sys.executable, "-m", "fleetgauge_core", "watch", "--config", str(config))
    with (folder / "watch.log").open("wb") as log:
        process = psutil.Popen([*command, "--listen", f"{HOST}:{port}"], stdout=log, stderr=log)
        try:
            yield RunningWatch(process, port)
        finally:
            process.terminate()
            process.wait()
