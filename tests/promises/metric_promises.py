"""Metrics of every process: name, type and labels."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.parser import text_string_to_metric_families

from fleetgauge_core.kafka import TopicChangeReporter
from fleetgauge_core.runtime.health_server import ProcessHealth
from fleetgauge_dashboards.metrics import DashMetrics
from fleetgauge_dashboards.reader import LakeReader
from fleetgauge_dashboards.single_flight import SingleFlight
from fleetgauge_operations.changes.observer_metrics import ObserverMetrics
from fleetgauge_operations.changes.report_metrics import ReportMetrics
from fleetgauge_operations.recovery.metrics import RecoveryMetrics
from fleetgauge_operations.watch.metrics import WatchMetrics
from fleetgauge_pipelines.jobs.metrics import StreamMetrics
from fleetgauge_probes.agent.metrics import AgentMetrics
from tests.deployment.metrics import RULES, list_recorded_names, load_alerts

#: The suffix that a metric type adds to the name; a histogram's series have their own suffixes.
_ENDINGS = {"counter": "_total", "info": "_info"}


def collect() -> Iterator[str]:
    for process, registry in _registries().items():
        yield from (f"{process}: {line}" for line in _describe_registry(registry))
    yield from (f"dash: {line}" for line in _describe_dash_metrics())
    yield from (f"{RULES.name}: records {name}" for name in list_recorded_names())
    yield from (f"{RULES.name}: alert {alert['alert']}" for alert in load_alerts())


def _registries() -> dict[str, CollectorRegistry]:
    """Return the registry of each process that serves metrics with ``--listen``."""
    processes = {
        name: ProcessHealth(name, 60)
        for name in ("probe", "stream", "watch", "observe", "mitigate", "recover")
    }
    # Created when it is first used, which every process does but the dashboard.
    assert all(process.parts for process in processes.values())
    registries = {name: process.registry for name, process in processes.items()}
    AgentMetrics(registries["probe"], spool_max_bytes=1_000)
    StreamMetrics(registries["stream"])
    WatchMetrics(registries["watch"])
    ReportMetrics(registries["watch"])
    ObserverMetrics(registries["observe"])
    RecoveryMetrics(registries["recover"])
    for process in ("probe", "stream", "watch", "recover"):
        TopicChangeReporter(registries[process])
    return registries


def _describe_registry(registry: CollectorRegistry) -> Iterator[str]:
    for metric in registry._collector_to_names:
        if isinstance(metric, MetricWrapperBase):
            labels = {"version", "process"} if metric._type == "info" else metric._labelnames
            yield _line(metric._name, metric._type, labels)
        else:
            yield from (_line(family.name, family.type, ()) for family in metric.collect())


def _describe_dash_metrics() -> Iterator[str]:
    """Yield the dashboard's metrics; they are complete even for a lake that does not exist."""
    metrics = DashMetrics({"local": LakeReader(str(Path(__file__).parent / "no-such-lake"))}, SingleFlight())
    metrics.observe_response("fleet", 0.1)
    for family in text_string_to_metric_families(metrics.render().decode()):
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        yield _line(family.name, family.type, labels)


def _line(name: str, kind: str | None, labels: Iterable[str]) -> str:
    return f"{name}{_ENDINGS.get(kind or '', '')} {kind} {{{', '.join(sorted(labels))}}}"
