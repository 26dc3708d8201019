"""What the agent costs, at three brokers and at hundreds, and whether it measures what brokers do."""

import sys
import tempfile
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import psutil
import yaml

from fleetgauge_core.contract import PROBE_MINUTE, Leg
from fleetgauge_core.fleet import Fleet, Telemetry
from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_core.runtime.uptime import uptime_ns
from fleetgauge_core.slo.quantile import quantile
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_local.layout import HOST, ClusterSpec
from fleetgauge_local.ports import find_free_ports
from fleetgauge_probes.agent.topic_plan import TOPIC
from tests.benchmarks._delays import Delay, Truth, doors
from tests.benchmarks._measure import Figure, Options, peak_bytes
from tests.benchmarks._mock_cluster import mock_cluster
from tests.listeners import Listener, more_listeners
from tests.waiting import let_pass, wait_until
from tests.whole_topic import values_on

MEASURED_S = 120
PATIENCE_S = 300
#: Reading all the records is not for nothing, so it is not done every moment.
READ_EVERY_S = 5
#: With a thousand brokers on two processors a minute is not enough.
ENDS_WITHIN_S = 300
#: Of one cluster: more cost the mock itself too much, which looks at all its connections for each request.
MOCK_BROKERS = 100
CARRIER = ClusterSpec("telemetry", brokers=1)
#: A local fleet measures at least one cluster.
IDLE = ClusterSpec("idle", brokers=1)
#: With every hundredth slow, these hold one slow probe more than a p99 leaves out, be they some more or less.
FAITHFUL_PROBES = 375
_MB = 1_000_000


def measure(options: Options) -> Iterator[Figure]:
    """Every case, or those that are asked for."""
    cases: Mapping[str, Callable[[float], Iterator[Figure]]] = {
        "three": three,
        "mock-300": lambda seconds: mocked(3, seconds, cores=1.0, memory_mb=400, lag_ms=20.0),
        "mock-1000": lambda seconds: mocked(10, seconds),
        "fidelity": lambda _: fidelity(round(FAITHFUL_PROBES * options.scale)),
    }
    for name, case in cases.items():
        if not options.only or name in options.only:
            yield from case(MEASURED_S * options.scale)


# --- What it costs -----------------------------------------------------------


def three(seconds: float) -> Iterator[Figure]:
    """Three real brokers; all that the agent does is laid upon its pairs."""
    clusters = (ClusterSpec("three", brokers=3), CARRIER)
    with _folder() as folder, LocalFleet(folder / "fleet", clusters) as local:
        bootstraps = {"three": local.bootstrap("three")}
        with agent(folder, bootstraps, local.bootstrap("telemetry")) as running:
            watched = running.watch(brokers=3, seconds=seconds)
        yield from running.cost(watched).figures("three real brokers", running.failed(), pair_ms=0.35)


def mocked(
    clusters: int,
    seconds: float,
    cores: float | None = None,
    memory_mb: float | None = None,
    lag_ms: float | None = None,
) -> Iterator[Figure]:
    """Clusters of a hundred mock brokers; a real one takes the records."""
    brokers = clusters * MOCK_BROKERS
    with ExitStack() as stack:
        folder = stack.enter_context(_folder())
        local = stack.enter_context(LocalFleet(folder / "fleet", (IDLE, CARRIER)))
        mocks = [stack.enter_context(mock_cluster(MOCK_BROKERS, TOPIC)) for _ in range(clusters)]
        bootstraps = {f"mock-{number}": at for number, at in enumerate(mocks, 1)}
        with agent(folder, bootstraps, local.bootstrap("telemetry"), "--mocked") as running:
            watched = running.watch(brokers, seconds)
        yield from running.cost(watched).figures(
            f"{brokers} mock brokers in {clusters} clusters",
            running.failed(),
            cores=cores,
            memory_mb=memory_mb,
            lag_ms=lag_ms,
        )


@dataclass(frozen=True, slots=True)
class Cost:
    """Of an agent, over some seconds; a pair is a probe of the client leg, produced and consumed."""

    told: int
    """Brokers and legs that it keeps up with."""
    seconds: float
    cpu_s: float
    stolen: float
    """The share of its processors that the machine was not given by its host."""
    memory_bytes: int
    lags_ns: Sequence[int]
    """Of every probe sent, on both legs, ascending."""

    def figures(
        self,
        what: str,
        failed: int,
        *,
        pair_ms: float | None = None,
        cores: float | None = None,
        memory_mb: float | None = None,
        lag_ms: float | None = None,
    ) -> Iterator[Figure]:
        pair_cpu_ms = 1000 * self.cpu_s * len(Leg) / len(self.lags_ns)
        yield Figure(f"{what}: brokers and legs that it keeps up with", self.told, "legs")
        yield Figure(f"{what}: probes sent", len(self.lags_ns), "probes")
        yield Figure(f"{what}: probes failed", failed, "probes", 0)
        yield Figure(f"{what}: CPU of the whole agent for each pair", round(pair_cpu_ms, 3), "ms", pair_ms)
        yield Figure(f"{what}: CPU", round(self.cpu_s / self.seconds, 4), "cores", cores)
        yield Figure(f"{what}: memory", round(self.memory_bytes / _MB), "MB", memory_mb)
        lag_ns = self.lags_ns[-(-999 * len(self.lags_ns) // 1000) - 1]
        yield Figure(f"{what}: own lag at p99.9", round(lag_ns / 1e6, 3), "ms", lag_ms)
        yield Figure(f"{what}: processor that the host kept", round(100 * self.stolen, 1), "%")


# --- Whether it tells the truth ----------------------------------------------


def every_hundredth(usual_s: float, slow_s: float) -> Delay:
    return lambda number: slow_s if number % 100 == 50 else usual_s


DELAYS: Mapping[str, Delay] = {
    **{f"{ms} ms": lambda _, s=ms / 1000: s for ms in (0, 2, 20, 100, 320)},
    "2 ms, 1% 200 ms": every_hundredth(0.002, 0.2),
}


def fidelity(probes: int) -> Iterator[Figure]:
    """One broker by as many doors as there are delays, each a cluster of the same agent."""
    ports = find_free_ports(2 * len(DELAYS), Random())
    inside, outside = ports[: len(DELAYS)], ports[len(DELAYS) :]
    listeners = {
        f"DOOR{number}": Listener(port, advertised=door)
        for number, (port, door) in enumerate(zip(inside, outside, strict=True))
    }
    behind = dict(zip(outside, zip(inside, DELAYS.values(), strict=True), strict=True))
    with (
        _folder() as folder,
        more_listeners(lambda _, place: listeners if place.cluster == "held" else {}),
        LocalFleet(folder / "fleet", (ClusterSpec("held", brokers=1), CARRIER)) as local,
        doors(behind) as truths,
    ):
        names = {f"door-{port}": name for port, name in zip(outside, DELAYS, strict=True)}
        bootstraps = {f"door-{port}": f"{HOST}:{port}" for port in outside}
        with agent(folder, bootstraps, local.bootstrap("telemetry")) as running:
            wait_until(
                lambda: all(len(truth.of(leg)) > 0 for truth in truths.values() for leg in Leg),
                PATIENCE_S,
                "the first probes",
            )
            began, undelayed = time.monotonic(), truths[outside[0]]
            before = dict(undelayed.requests), undelayed.passed_bytes
            wait_until(
                lambda: all(len(truth.of(leg)) >= probes for truth in truths.values() for leg in Leg),
                PATIENCE_S + probes,
                "the probes",
            )
            yield from footprint(undelayed, *before, time.monotonic() - began)
        assert running.failed() == 0
        for port, truth in truths.items():
            for leg in Leg:
                yield from compared(
                    f"{names[f'door-{port}']}, {leg.value} leg",
                    truth.of(leg),
                    running.measured(f"door-{port}", leg),
                )


def footprint(truth: Truth, requests: Mapping[int, int], passed: int, seconds: float) -> Iterator[Figure]:
    """What one broker sees of an agent when it is all of its cluster."""
    asked = truth.requests.total() - sum(requests.values())
    yield Figure("a broker alone: connections", truth.connections, "connections")
    yield Figure("a broker alone: requests", round(asked / seconds, 1), "1/s")
    yield Figure("a broker alone: bytes both ways", round((truth.passed_bytes - passed) / seconds), "B/s")


def compared(what: str, truth_us: Sequence[int], measured_us: Sequence[int]) -> Iterator[Figure]:
    """How far the agent is from the truth; the goal grows with what is measured."""
    yield Figure(f"{what}: probes", len(measured_us), "probes")
    for a, least_ms, share in ((50, 1.0, 0.03), (99, 3.0, 0.05)):
        true_us, found_us = quantile(a, truth_us), quantile(a, measured_us)
        assert true_us is not None
        assert found_us is not None
        goal = round(least_ms + share * true_us / 1000, 3)
        yield Figure(f"{what}: p{a}", found_us / 1000, "ms")
        yield Figure(f"{what}: p{a} is off by", abs(found_us - true_us) / 1000, "ms", goal)
    yield Figure(f"{what}: maximum", measured_us[-1] / 1000, "ms")
    yield Figure(f"{what}: maximum is off by", abs(measured_us[-1] - truth_us[-1]) / 1000, "ms")


# --- An agent in a process of its own ----------------------------------------


@dataclass(frozen=True, slots=True)
class Watched:
    """Some time of an agent's life, by the uptime, and what it took in it."""

    told: int
    """Brokers and legs of which there were two minutes when it began."""
    from_ns: int
    to_ns: int
    cpu_s: float
    stolen: float
    peak_bytes: int


class Running:
    """An agent: what it takes while it runs, and what it has told once it has ended."""

    def __init__(self, process: psutil.Popen, telemetry: Telemetry, sent: Path) -> None:
        self._process = process
        self._telemetry = telemetry
        self._sent = sent

    def watch(self, brokers: int, seconds: float) -> Watched:
        """For so long, once every broker and leg has told of two minutes: the first is a part of one.

        Where there are too many for it, those that have done so by then.
        """
        with suppress(TimeoutError):
            wait_until(
                lambda: self._in_their_second_minute() >= brokers * len(Leg),
                PATIENCE_S,
                "a second minute of every broker",
                READ_EVERY_S,
            )
        told = self._in_their_second_minute()
        from_ns, cpu_s = uptime_ns(), self._cpu_s()
        psutil.cpu_times_percent()
        let_pass(time.monotonic() + seconds)
        stolen = psutil.cpu_times_percent().steal / 100
        return Watched(
            told, from_ns, uptime_ns(), self._cpu_s() - cpu_s, stolen, peak_bytes(self._process.pid)
        )

    def cost(self, watched: Watched) -> Cost:
        """Of the time that was watched, once the agent has ended; memory is its highest ever."""
        pairs = array("q", self._sent.read_bytes())
        sent = zip(pairs[::2], pairs[1::2], strict=True)
        lags_ns = sorted(lag_ns for at_ns, lag_ns in sent if watched.from_ns <= at_ns < watched.to_ns)
        seconds = (watched.to_ns - watched.from_ns) / 1e9
        return Cost(watched.told, seconds, watched.cpu_s, watched.stolen, watched.peak_bytes, lags_ns)

    def failed(self) -> int:
        """Probes of all records, the first and the last included."""
        return sum(one["attempted"] - len(_successes_us(one)) for one in self._records())

    def measured(self, cluster_id: str, leg: Leg) -> list[int]:
        """The latencies of all its records, in microseconds, ascending."""
        told = (one for one in self._records() if (one["cluster_id"], one["leg"]) == (cluster_id, leg.value))
        return sorted(took_us for one in told for took_us in _successes_us(one))

    def _in_their_second_minute(self) -> int:
        minutes = Counter((one["cluster_id"], one["broker_id"], one["leg"]) for one in self._records())
        return sum(count > 1 for count in minutes.values())

    def _records(self) -> list[dict[str, Any]]:
        try:
            values = values_on(self._telemetry.access, self._telemetry.topics.probe_minutes.name)
        except KafkaUnavailableError:
            # The topic is made when the agent starts.
            return []
        return [PROBE_MINUTE.decode(value) for value in dict.fromkeys(values)]

    def _cpu_s(self) -> float:
        return sum(self._process.cpu_times()[:2])


def _successes_us(record: Mapping[str, Any]) -> Sequence[int]:
    found: Sequence[int] = record["e2e_us" if record["leg"] == Leg.CLIENT.value else "ack_us"]
    return found


@contextmanager
def agent(folder: Path, bootstraps: Mapping[str, str], carrier: str, *options: str) -> Iterator[Running]:
    """It runs until the block is left, and has ended then."""
    clusters = [{"id": name, "bootstrap": at, "managed": not options} for name, at in bootstraps.items()]
    document = {"vantage": "bench", "clusters": clusters, "telemetry": {"bootstrap": carrier}}
    config, sent, log = folder / "fleet.yaml", folder / "sent.bin", folder / "agent.log"
    config.write_text(yaml.safe_dump(document), encoding="utf-8")
    arguments = (*options, "--sent", sent, "--", "--config", config, "--spool", folder / "spool")
    command = (sys.executable, "-m", "tests.benchmarks._agent_process", *map(str, arguments))
    telemetry = Fleet.model_validate(document).telemetry
    assert telemetry is not None
    with log.open("wb") as said:
        process = psutil.Popen(command, stdout=said, stderr=said)
        try:
            yield Running(process, telemetry, sent)
        finally:
            process.terminate()
            with suppress(psutil.TimeoutExpired):
                process.wait(ENDS_WITHIN_S)
            if process.is_running():
                process.kill()
            ended = process.wait()
    assert ended == 0, log.read_text(encoding="utf-8")


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="fleetgauge-bench-") as folder:
        yield Path(folder)
