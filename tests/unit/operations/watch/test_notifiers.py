from datetime import UTC, datetime

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from fleetgauge_operations.watch.alertmanager import Alertmanager
from fleetgauge_operations.watch.metrics import WatchMetrics
from fleetgauge_operations.watch.notifiers import sinks
from fleetgauge_operations.watch.webhook import Webhook
from fleetgauge_probes.fleet import Notifier


def noon() -> datetime:
    return datetime(2026, 3, 2, 12, tzinfo=UTC)


def test_there_is_a_sink_of_its_kind_for_each_notifier() -> None:
    notifiers = [
        Notifier(kind="webhook", url="http://a/1"),
        Notifier(kind="alertmanager", url="http://a"),
        Notifier(kind="webhook", url="http://a/2"),
    ]
    found = sinks(notifiers, noon, WatchMetrics(CollectorRegistry()))
    assert [type(one) for one in found] == [Webhook, Alertmanager, Webhook]
    assert sinks([], noon, WatchMetrics(CollectorRegistry())) == ()


@pytest.mark.parametrize(
    ("url", "known_as"),
    [
        ("https://hooks.example.com/services/hunter2?token=hunter2#hunter2", "hooks.example.com"),
        ("https://hunter2:hunter2@hooks.example.com:8443/", "hooks.example.com"),
        ("https://hooks.example.com\\hunter2", "hooks.example.com"),
        ("http://[hunter2", "unknown"),
        ("http://", "unknown"),
    ],
)
def test_a_notifier_is_known_by_its_host_and_by_nothing_that_may_be_secret(url: str, known_as: str) -> None:
    registry = CollectorRegistry()
    sinks([Notifier(kind="webhook", url=url)], noon, WatchMetrics(registry))
    told = generate_latest(registry).decode()
    assert f'notifier="{known_as}"' in told
    assert "hunter2" not in told
