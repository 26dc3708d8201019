"""Metrics of every process: name, type and labels."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.parser import text_string_to_metric_families

from fleetgauge_core.runtime.health_server import Vitals
from fleetgauge_dashboards.metrics import DashMetrics
from fleetgauge_dashboards.reader import Lake
from fleetgauge_dashboards.single_flight import Patience
from fleetgauge_operations.recovery.metrics import RecoverMetrics
from fleetgauge_operations.watch.metrics import WatchMetrics
from fleetgauge_pipelines.jobs.metrics import StreamMetrics
from fleetgauge_probes.agent.metrics import AgentMetrics
from tests.deployment.metrics import RULES, alerts, recorded

#: What a type adds to a metric's name; a histogram's three series have endings of their own.
_ENDINGS = {"counter": "_total", "info": "_info"}


def collect() -> Iterator[str]:
    for process, registry in _registries().items():
        yield from (f"{process}: {line}" for line in _of_registry(registry))
    yield from (f"dash: {line}" for line in _of_pages())
    yield from (f"{RULES.name}: records {name}" for name in recorded())
    yield from (f"{RULES.name}: alert {alert['alert']}" for alert in alerts())


def _registries() -> dict[str, CollectorRegistry]:
    """What each process that answers by ``--listen`` registers."""
    registries = {
        name: Vitals(name, 60).registry for name in ("probe", "stream", "watch", "mitigate", "recover")
    }
    AgentMetrics(registries["probe"], spool_max_bytes=1_000)
    StreamMetrics(registries["stream"])
    WatchMetrics(registries["watch"])
    RecoverMetrics(registries["recover"])
    return registries


def _of_registry(registry: CollectorRegistry) -> Iterator[str]:
    for metric in registry._collector_to_names:
        assert isinstance(metric, MetricWrapperBase)
        labels = {"version", "process"} if metric._type == "info" else metric._labelnames
        yield _line(metric._name, metric._type, labels)


def _of_pages() -> Iterator[str]:
    """They are collected as they are asked for; of a lake that is not there too."""
    metrics = DashMetrics({"local": Lake(str(Path(__file__).parent / "no-such-lake"))}, Patience())
    metrics.answered("fleet", 0.1)
    for family in text_string_to_metric_families(metrics.text().decode()):
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        yield _line(family.name, family.type, labels)


def _line(name: str, kind: str | None, labels: Iterable[str]) -> str:
    return f"{name}{_ENDINGS.get(kind or '', '')} {kind} {{{', '.join(sorted(labels))}}}"
