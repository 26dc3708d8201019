"""What one watch costs that follows a whole fleet: real pulses and minutes on real topics, as agents send.

It starts with an hour of every broker's history, as a watch that takes over does.
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
from tests.benchmarks._measure import Figure, Options, peak_bytes
from tests.exposition import samples
from tests.ports import free_port
from tests.probe_minutes import CLIENT, MINUTE
from tests.waiting import let_pass, wait_until

MEASURED_S = 120
WARM_UP_S = 60
PATIENCE_S = 120
EVERY_S = 5
#: A cluster's minutes come with every twelfth of its pulses.
PULSES_A_MINUTE = 60 // EVERY_S
#: Of a hundred minutes of a broker one has lost a probe: 99.99% available.
LOSES = 0.01
#: Of one cluster.
BROKERS = 100
VANTAGE = "bench"
HEARD = "fleetgauge_watch_pulse_timestamp_seconds"
_MB = 1_000_000


def measure(options: Options) -> Iterator[Figure]:
    """1,000 and 20,000 brokers, or those that are asked for."""
    for brokers in (1_000, 20_000):
        if not options.only or str(brokers) in options.only:
            yield from _watched(brokers, MEASURED_S * options.scale)


def _watched(brokers: int, seconds: float) -> Iterator[Figure]:
    names = [f"cluster-{n:03}" for n in range(brokers // BROKERS)]
    with tempfile.TemporaryDirectory(prefix="fleetgauge-bench-") as folder:
        where = Path(folder)
        clusters = (ClusterSpec("idle", brokers=1), ClusterSpec("telemetry", brokers=1))
        with LocalFleet(where / "fleet", clusters) as local:
            config = where / "fleet.yaml"
            document = {
                "telemetry": {"bootstrap": local.bootstrap("telemetry")},
                "clusters": [{"id": one, "bootstrap": "nobody:1"} for one in names],
            }
            config.write_text(yaml.safe_dump(document), encoding="utf-8")
            telemetry = load_fleet(config).telemetry
            assert telemetry is not None
            _remember(telemetry, names)
            with _told(telemetry, names) as sent, _watching(where, config) as watch:
                watch.wait_for(len(names))
                let_pass(time.monotonic() + WARM_UP_S)
                cost = watch.cost(seconds)
                behind = _minutes_behind(telemetry, dict(sent))
    what = f"a watch of {brokers} brokers in {len(names)} clusters"
    yield Figure(f"{what}: CPU", round(cost.cpu_s / cost.seconds, 4), "cores")
    yield Figure(f"{what}: memory", round(cost.memory_bytes / _MB), "MB")
    yield Figure(f"{what}: oldest latest pulse", round(cost.oldest_s, 1), "s", 2 * EVERY_S)
    yield Figure(f"{what}: minutes of a cluster that it has not counted", behind, "minutes", 2)
    yield Figure(f"{what}: processor that the host kept", round(100 * cost.stolen, 1), "%")


def _remember(telemetry: Telemetry, names: list[str]) -> None:
    """As if every broker had been well for an hour."""
    ensure_telemetry_topics(telemetry)
    ensure_state_topic(telemetry, telemetry.topics.watch_state)
    history = (LatencyQuantiles(4_000, 12_000),) * DEFAULT_THRESHOLDS.history_blocks
    with _state_store(telemetry) as store:
        for name in names:
            for broker in range(1, BROKERS + 1):
                store.save_latency_history(LatencyHistoryKey(name, broker, VANTAGE), history)


def _minutes_behind(telemetry: Telemetry, sent: Mapping[str, int]) -> int:
    """Of the cluster that it is furthest behind with; one is open until the next begins."""
    with _state_store(telemetry) as store:
        counted = store.restore().burn_minutes
    return max(number - len(counted.get(name, ())) for name, number in sent.items())


@contextmanager
def _state_store(telemetry: Telemetry) -> Iterator[StateStore]:
    store = StateStore(telemetry)
    store.start()
    try:
        yield store
    finally:
        store.stop()


@contextmanager
def _told(telemetry: Telemetry, names: list[str]) -> Iterator[Mapping[str, int]]:
    """What an agent says of each cluster, spread over them, while the block runs: a pulse every 5 s, the
    minutes of its brokers' two legs every minute. Of each cluster, how many minutes so far.
    """
    sent: dict[str, int] = {}
    enough, agent, topics = Event(), RecordProducer(telemetry.access, "bench"), telemetry.topics

    def go_on() -> None:
        # Only its time and number change: making all of it anew would take the processor that is measured.
        pulses = [asdict(_pulse(name, Random(name))) for name in names]
        minutes, random = asdict(_minute()), Random(1)
        # An agent has a minute's last answer 13 s after its end.
        first = (datetime.now(UTC) - timedelta(seconds=73)).replace(second=0, microsecond=0)
        number, started_s = 0, time.monotonic()
        while not enough.wait(max(0.0, started_s + number * EVERY_S / len(names) - time.monotonic())):
            pulse, of = divmod(number, len(names))
            now = {"sequence": number, "emitted_at": datetime.now(UTC)}
            agent.send(topics.probe_pulse.name, names[of], PROBE_PULSE.encode(pulses[of] | now))
            minute, left = divmod(pulse - of % PULSES_A_MINUTE, PULSES_A_MINUTE)
            if not left:
                told = {"cluster_id": names[of], "sequence": minute, "minute": first + minute * MINUTE}
                for one in _of_all_brokers(minutes | told, random):
                    agent.send(topics.probe_minutes.name, names[of], PROBE_MINUTE.encode(one))
                sent[names[of]] = minute + 1
            number += 1

    agent.start()
    thread = Thread(target=go_on)
    thread.start()
    try:
        yield sent
    finally:
        enough.set()
        thread.join()
        agent.stop()


def _pulse(cluster_id: str, random: Random) -> ProbePulse:
    brokers = tuple(_broker(one, random.randrange(3_000, 6_000)) for one in range(1, BROKERS + 1))
    return ProbePulse("bench", "run", VANTAGE, cluster_id, 0, datetime.now(UTC), 1000 * 15, brokers)


def _broker(broker_id: int, p50_us: int) -> BrokerPulse:
    legs = tuple(
        LegPulse(leg, 25, 25, 0, 0, None, 300, p50_us, 3 * p50_us) for leg in (Leg.CLIENT, Leg.LEADER)
    )
    return BrokerPulse(broker_id, True, True, False, 500, 900, legs, None, 200, None, None)


def _minute() -> ProbeMinute:
    """Of a broker that answers all."""
    took_us = tuple(sorted(Random(0).choices(range(3_000, 12_000), k=100)))
    return replace(
        CLIENT,
        vantage=VANTAGE,
        expected_brokers=tuple(range(1, BROKERS + 1)),
        acknowledged=100,
        received=100,
        ack_us=took_us,
        e2e_us=took_us,
        produce_failures={},
        consume_failures={},
        lost=0,
    )


def _of_all_brokers(minute: Mapping[str, Any], random: Random) -> Iterator[Mapping[str, Any]]:
    """Both legs of each; now and then a probe is lost."""
    for broker in range(1, BROKERS + 1):
        loses = random.random() < LOSES
        lost = {"received": 99, "e2e_us": minute["e2e_us"][:-1], "consume_failures": {"NOT_RECEIVED": 1}}
        yield {**minute, "broker_id": broker, **(lost if loses else {})}
        yield {**minute, "broker_id": broker, "leg": "leader", "e2e_us": ()}


@dataclass(frozen=True, slots=True)
class Cost:
    """Of a watch over some seconds; memory is its highest ever."""

    seconds: float
    cpu_s: float
    memory_bytes: int
    stolen: float
    """The share of the processors that the machine was not given by its host."""
    oldest_s: float
    """How old the latest pulse was of the cluster that it heard of longest ago, at the end."""


class Watching:
    """A watch in a process of its own."""

    def __init__(self, process: psutil.Popen, port: int) -> None:
        self._process = process
        self._port = port

    def wait_for(self, clusters: int) -> None:
        """Until it has heard of all of them."""
        wait_until(lambda: len(self._heard()) == clusters, PATIENCE_S, "every cluster to be heard of", 1.0)

    def cost(self, seconds: float) -> Cost:
        from_s, cpu_s = time.monotonic(), self._cpu_s()
        psutil.cpu_times_percent()
        let_pass(from_s + seconds)
        stolen = psutil.cpu_times_percent().steal / 100
        took_s, cpu_s = time.monotonic() - from_s, self._cpu_s() - cpu_s
        oldest_s = time.time() - min(self._heard().values())
        return Cost(took_s, cpu_s, peak_bytes(self._process.pid), stolen, oldest_s)

    def _heard(self) -> Mapping[tuple[str, ...], float]:
        with (
            suppress(OSError),
            urllib.request.urlopen(f"http://{HOST}:{self._port}/metrics", timeout=10) as answer,
        ):
            return samples(answer.read().decode(), HEARD)
        return {}

    def _cpu_s(self) -> float:
        return sum(self._process.cpu_times()[:2])


@contextmanager
def _watching(folder: Path, config: Path) -> Iterator[Watching]:
    port = free_port()
    command = (sys.executable, "-m", "fleetgauge_core", "watch", "--config", str(config))
    with (folder / "watch.log").open("wb") as log:
        process = psutil.Popen([*command, "--listen", f"{HOST}:{port}"], stdout=log, stderr=log)
        try:
            yield Watching(process, port)
        finally:
            process.terminate()
            process.wait()
