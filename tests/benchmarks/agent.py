"""Measures the cost of the agent with three and with hundreds of brokers, and its accuracy."""

import sys
import tempfile
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from tests.benchmarks._delays import Delay, ProxyMeasurements, run_proxies
from tests.benchmarks._measure import Figure, Options, read_peak_bytes
from tests.benchmarks._mock_cluster import run_mock_cluster
from tests.listeners import Listener, add_listeners
from tests.topic_values import read_values
from tests.waiting import let_pass, wait_until

MEASURED_S = 120
TIMEOUT_S = 300
#: Reading all records takes CPU time, so it is done rarely.
READ_EVERY_S = 5
#: With a thousand brokers on two CPUs a minute is not enough.
SHUTDOWN_TIMEOUT_S = 300
#: Brokers of one cluster. With more the mock itself takes too much CPU: it scans all connections per request.
MOCK_BROKERS = 100
TELEMETRY = ClusterSpec("telemetry", brokers=1)
#: A local fleet measures at least one cluster.
IDLE = ClusterSpec("idle", brokers=1)
#: With every hundredth slow, p99 is a slow probe, also if there are some probes more or less.
FIDELITY_PROBES = 375
_MB = 1_000_000


def measure(options: Options) -> Iterator[Figure]:
    """Run all cases, or the selected ones."""
    cases: Mapping[str, Callable[[float], Iterator[Figure]]] = {
        "three": measure_three_brokers,
        "mock-300": lambda seconds: measure_mock_brokers(3, seconds, cores=1.0, memory_mb=400, lag_ms=20.0),
        "mock-1000": lambda seconds: measure_mock_brokers(10, seconds),
        "fidelity": lambda _: measure_fidelity(round(FIDELITY_PROBES * options.scale)),
    }
    for name, case in cases.items():
        if not options.only or name in options.only:
            yield from case(MEASURED_S * options.scale)


# --- Cost --------------------------------------------------------------------


def measure_three_brokers(seconds: float) -> Iterator[Figure]:
    """Measure an agent of three real brokers; the CPU time per pair is all that the agent uses."""
    clusters = (ClusterSpec("three", brokers=3), TELEMETRY)
    with _create_folder() as folder, LocalFleet(folder / "fleet", clusters) as local:
        bootstraps = {"three": local.bootstrap("three")}
        with run_agent(folder, bootstraps, local.bootstrap("telemetry")) as running:
            sample = running.sample(brokers=3, seconds=seconds)
        cost = running.compute_cost(sample)
        yield from cost.figures("three real brokers", running.count_failed(), pair_ms=0.35)


def measure_mock_brokers(
    clusters: int,
    seconds: float,
    cores: float | None = None,
    memory_mb: float | None = None,
    lag_ms: float | None = None,
) -> Iterator[Figure]:
    """Measure an agent of clusters of a hundred mock brokers each; a real broker takes the records."""
    brokers = clusters * MOCK_BROKERS
    with ExitStack() as stack:
        folder = stack.enter_context(_create_folder())
        local = stack.enter_context(LocalFleet(folder / "fleet", (IDLE, TELEMETRY)))
        mocks = [stack.enter_context(run_mock_cluster(MOCK_BROKERS, TOPIC)) for _ in range(clusters)]
        bootstraps = {f"mock-{number}": bootstrap for number, bootstrap in enumerate(mocks, 1)}
        with run_agent(folder, bootstraps, local.bootstrap("telemetry"), "--mocked") as running:
            sample = running.sample(brokers, seconds)
        yield from running.compute_cost(sample).figures(
            f"{brokers} mock brokers in {clusters} clusters",
            running.count_failed(),
            cores=cores,
            memory_mb=memory_mb,
            lag_ms=lag_ms,
        )


@dataclass(frozen=True, slots=True)
class AgentCost:
    """The cost of an agent over some seconds.

    ``reporting_legs`` are the brokers and legs with which it keeps up, ``stolen`` is the share of CPU time
    that the host withheld from this machine, and ``lags_ns`` are the schedule lags of all probes, ascending.
    """

    reporting_legs: int
    seconds: float
    cpu_s: float
    stolen: float
    memory_bytes: int
    lags_ns: Sequence[int]

    def figures(
        self,
        name: str,
        failed: int,
        *,
        pair_ms: float | None = None,
        cores: float | None = None,
        memory_mb: float | None = None,
        lag_ms: float | None = None,
    ) -> Iterator[Figure]:
        """Yield the figures; a pair is a probe of the client leg, produced and consumed."""
        pair_cpu_ms = 1000 * self.cpu_s * len(Leg) / len(self.lags_ns)
        yield Figure(f"{name}: brokers and legs with which it keeps up", self.reporting_legs, "legs")
        yield Figure(f"{name}: probes sent", len(self.lags_ns), "probes")
        yield Figure(f"{name}: probes failed", failed, "probes", 0)
        yield Figure(f"{name}: CPU of the whole agent per pair", round(pair_cpu_ms, 3), "ms", pair_ms)
        yield Figure(f"{name}: CPU", round(self.cpu_s / self.seconds, 4), "cores", cores)
        yield Figure(f"{name}: memory", round(self.memory_bytes / _MB), "MB", memory_mb)
        lag_ns = self.lags_ns[-(-999 * len(self.lags_ns) // 1000) - 1]
        yield Figure(f"{name}: schedule lag at p99.9", round(lag_ns / 1e6, 3), "ms", lag_ms)
        yield Figure(f"{name}: CPU steal", round(100 * self.stolen, 1), "%")


# --- Accuracy ----------------------------------------------------------------


def delay_every_hundredth(usual_s: float, slow_s: float) -> Delay:
    return lambda number: slow_s if number % 100 == 50 else usual_s


DELAYS: Mapping[str, Delay] = {
    **{f"{ms} ms": lambda _, s=ms / 1000: s for ms in (0, 2, 20, 100, 320)},
    "2 ms, 1% 200 ms": delay_every_hundredth(0.002, 0.2),
}


def measure_fidelity(probes: int) -> Iterator[Figure]:
    """Measure a broker through a proxy per delay, each of which is a cluster of the same agent."""
    ports = find_free_ports(2 * len(DELAYS), Random())
    upstream_ports, proxy_ports = ports[: len(DELAYS)], ports[len(DELAYS) :]
    listeners = {
        f"PROXY{number}": Listener(port, advertised=proxy_port)
        for number, (port, proxy_port) in enumerate(zip(upstream_ports, proxy_ports, strict=True))
    }
    targets = dict(zip(proxy_ports, zip(upstream_ports, DELAYS.values(), strict=True), strict=True))
    with (
        _create_folder() as folder,
        add_listeners(lambda _, place: listeners if place.cluster == "delayed" else {}),
        LocalFleet(folder / "fleet", (ClusterSpec("delayed", brokers=1), TELEMETRY)) as local,
        run_proxies(targets) as measurements,
    ):
        names = {f"proxy-{port}": name for port, name in zip(proxy_ports, DELAYS, strict=True)}
        bootstraps = {f"proxy-{port}": f"{HOST}:{port}" for port in proxy_ports}
        with run_agent(folder, bootstraps, local.bootstrap("telemetry")) as running:
            wait_until(
                lambda: _have_probes(measurements.values(), 1),
                TIMEOUT_S,
                "the first probes",
            )
            began, undelayed = time.monotonic(), measurements[proxy_ports[0]]
            before = dict(undelayed.requests), undelayed.passed_bytes
            wait_until(
                lambda: _have_probes(measurements.values(), probes),
                TIMEOUT_S + probes,
                "the probes",
            )
            yield from compute_broker_load(undelayed, *before, time.monotonic() - began)
        assert running.count_failed() == 0
        for port, expected in measurements.items():
            for leg in Leg:
                yield from compare_latencies(
                    f"{names[f'proxy-{port}']}, {leg.value} leg",
                    expected.list_latencies(leg),
                    running.list_latencies(f"proxy-{port}", leg),
                )


def _have_probes(measurements: Iterable[ProxyMeasurements], count: int) -> bool:
    return all(len(proxy.list_latencies(leg)) >= count for proxy in measurements for leg in Leg)


def compute_broker_load(
    proxy: ProxyMeasurements, requests_before: Mapping[int, int], bytes_before: int, seconds: float
) -> Iterator[Figure]:
    """Yield the load that an agent puts on the only broker of a cluster."""
    requests = proxy.requests.total() - sum(requests_before.values())
    yield Figure("a broker alone: connections", proxy.connections, "connections")
    yield Figure("a broker alone: requests", round(requests / seconds, 1), "1/s")
    yield Figure(
        "a broker alone: bytes both ways", round((proxy.passed_bytes - bytes_before) / seconds), "B/s"
    )


def compare_latencies(name: str, expected_us: Sequence[int], measured_us: Sequence[int]) -> Iterator[Figure]:
    """Yield the error of the agent's quantiles and maximum; the goal grows with the latency."""
    yield Figure(f"{name}: probes", len(measured_us), "probes")
    for percent, least_ms, share in ((50, 1.0, 0.03), (99, 3.0, 0.05)):
        true_us, agent_us = quantile(percent, expected_us), quantile(percent, measured_us)
        assert true_us is not None
        assert agent_us is not None
        goal = round(least_ms + share * true_us / 1000, 3)
        yield Figure(f"{name}: p{percent}", agent_us / 1000, "ms")
        yield Figure(f"{name}: error of p{percent}", abs(agent_us - true_us) / 1000, "ms", goal)
    yield Figure(f"{name}: maximum", measured_us[-1] / 1000, "ms")
    yield Figure(f"{name}: error of the maximum", abs(measured_us[-1] - expected_us[-1]) / 1000, "ms")


# --- An agent in a separate process ------------------------------------------


@dataclass(frozen=True, slots=True)
class AgentSample:
    """A span of an agent's run by the uptime, and the resources that it took then.

    ``reporting_legs`` are the brokers and legs with records of two minutes when the span began.
    """

    reporting_legs: int
    from_ns: int
    to_ns: int
    cpu_s: float
    stolen: float
    peak_bytes: int


class RunningAgent:
    """An agent process: its resources while it runs, and its records."""

    def __init__(self, process: psutil.Popen, telemetry: Telemetry, sent: Path) -> None:
        self._process = process
        self._telemetry = telemetry
        self._sent = sent

    def sample(self, brokers: int, seconds: float) -> AgentSample:
        """Sample for ``seconds``, once every broker and leg has two minutes; the first is incomplete.

        If that is not so in time, the sample begins with those brokers and legs that have two minutes.
        """
        with suppress(TimeoutError):
            wait_until(
                lambda: self._count_reporting_legs() >= brokers * len(Leg),
                TIMEOUT_S,
                "a second minute of every broker",
                READ_EVERY_S,
            )
        reporting_legs = self._count_reporting_legs()
        from_ns, cpu_s = uptime_ns(), self._cpu_s()
        psutil.cpu_times_percent()
        let_pass(time.monotonic() + seconds)
        stolen = psutil.cpu_times_percent().steal / 100
        return AgentSample(
            reporting_legs,
            from_ns,
            uptime_ns(),
            self._cpu_s() - cpu_s,
            stolen,
            read_peak_bytes(self._process.pid),
        )

    def compute_cost(self, sample: AgentSample) -> AgentCost:
        """Return the cost during the sample, once the agent has ended; memory is the maximum of its life."""
        pairs = array("q", self._sent.read_bytes())
        sent = zip(pairs[::2], pairs[1::2], strict=True)
        lags_ns = sorted(lag_ns for at_ns, lag_ns in sent if sample.from_ns <= at_ns < sample.to_ns)
        seconds = (sample.to_ns - sample.from_ns) / 1e9
        return AgentCost(
            sample.reporting_legs, seconds, sample.cpu_s, sample.stolen, sample.peak_bytes, lags_ns
        )

    def count_failed(self) -> int:
        """Return the failed probes of all records, including the first and the last."""
        return sum(record["attempted"] - len(_latencies_us(record)) for record in self._read_records())

    def list_latencies(self, cluster_id: str, leg: Leg) -> list[int]:
        """Return the latencies of all records of a cluster and leg, in microseconds, ascending."""
        return sorted(
            latency_us
            for record in self._read_records()
            if (record["cluster_id"], record["leg"]) == (cluster_id, leg.value)
            for latency_us in _latencies_us(record)
        )

    def _count_reporting_legs(self) -> int:
        minutes = Counter(
            (record["cluster_id"], record["broker_id"], record["leg"]) for record in self._read_records()
        )
        return sum(count > 1 for count in minutes.values())

    def _read_records(self) -> list[dict[str, Any]]:
        try:
            values = read_values(self._telemetry.access, self._telemetry.topics.probe_minutes.name)
        except KafkaUnavailableError:
            # The agent creates the topic when it starts.
            return []
        return [PROBE_MINUTE.decode(value) for value in dict.fromkeys(values)]

    def _cpu_s(self) -> float:
        return sum(self._process.cpu_times()[:2])


def _latencies_us(record: Mapping[str, Any]) -> Sequence[int]:
    latencies_us: Sequence[int] = record["e2e_us" if record["leg"] == Leg.CLIENT.value else "ack_us"]
    return latencies_us


@contextmanager
def run_agent(
    folder: Path, bootstraps: Mapping[str, str], telemetry_bootstrap: str, *options: str
) -> Iterator[RunningAgent]:
    """Run an agent within the block; it has ended when the block is left."""
    clusters = [
        {"id": name, "bootstrap": bootstrap, "managed": not options} for name, bootstrap in bootstraps.items()
    ]
    document = {"vantage": "bench", "clusters": clusters, "telemetry": {"bootstrap": telemetry_bootstrap}}
    config, sent, log = folder / "fleet.yaml", folder / "sent.bin", folder / "agent.log"
    config.write_text(yaml.safe_dump(document), encoding="utf-8")
    arguments = (*options, "--sent", sent, "--", "--config", config, "--spool", folder / "spool")
    command = (sys.executable, "-m", "tests.benchmarks._agent_process", *map(str, arguments))
    telemetry = Fleet.model_validate(document).telemetry
    assert telemetry is not None
    with log.open("wb") as output:
        process = psutil.Popen(command, stdout=output, stderr=output)
        try:
            yield RunningAgent(process, telemetry, sent)
        finally:
            process.terminate()
            with suppress(psutil.TimeoutExpired):
                process.wait(SHUTDOWN_TIMEOUT_S)
            if process.is_running():
                process.kill()
            exit_code = process.wait()
    assert exit_code == 0, log.read_text(encoding="utf-8")


@contextmanager
def _create_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="fleetgauge-bench-") as folder:
        yield Path(folder)
