"""The promised metrics, which rules and the board use, are those that the processes export."""

from pathlib import Path

from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.parser import text_string_to_metric_families

from fleetgauge_core.kafka import TopicChangeReporter
from fleetgauge_core.runtime.health_server import ProcessHealth
from fleetgauge_dashboards.metrics import DashMetrics
from fleetgauge_dashboards.reader import LakeReader
from fleetgauge_dashboards.single_flight import SingleFlight
from fleetgauge_operations.recovery.metrics import RecoveryMetrics
from fleetgauge_operations.watch.metrics import WatchMetrics
from fleetgauge_pipelines.jobs.metrics import StreamMetrics
from fleetgauge_probes.agent.metrics import AgentMetrics
from tests.deployment.metrics import PROMISED

#: Suffixes of the name and additional labels by metric type.
ENDINGS = {
    "counter": [("_total", set())],
    "gauge": [("", set())],
    "info": [("_info", {"version", "process"})],
}
ENDINGS["histogram"] = [("_bucket", {"le"}), ("_sum", set()), ("_count", set())]


def list_series(registry: CollectorRegistry) -> dict[str, set[str]]:
    series = {}
    for metric in registry._collector_to_names:
        if isinstance(metric, MetricWrapperBase):
            for ending, labels in ENDINGS[metric._type]:
                series[f"{metric._name}{ending}"] = {*metric._labelnames} | labels
        else:
            samples = [sample for family in metric.collect() for sample in family.samples]
            series |= {sample.name: set(sample.labels) for sample in samples}
    return series


def list_sample_labels(exposition: str) -> dict[str, set[str]]:
    """Return the labels of each metric of a process that creates its metrics during a scrape."""
    return {
        sample.name: set(sample.labels)
        for family in text_string_to_metric_families(exposition)
        for sample in family.samples
    }


def test_the_promised_metrics_are_those_of_the_processes(tmp_path: Path) -> None:
    health = ProcessHealth("probe", 60)
    assert health.parts
    AgentMetrics(health.registry, spool_max_bytes=1_000)
    WatchMetrics(health.registry)
    RecoveryMetrics(health.registry)
    StreamMetrics(health.registry)
    TopicChangeReporter(health.registry)
    dash = DashMetrics({"local": LakeReader(str(tmp_path))}, SingleFlight())
    dash.observe_response("fleet", 0.1)
    assert list_series(health.registry) | list_sample_labels(dash.render().decode()) == PROMISED
