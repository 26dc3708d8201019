import pytest
from prometheus_client import CollectorRegistry

from fleetgauge_core.runtime.part_status import PartFault, PartStatus
from tests.exposition import samples_of

NAME = "fleetgauge_part_faulty"


def test_a_faulty_part_is_logged_once_and_exported_until_it_can_be_used(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    registry = CollectorRegistry()
    parts = PartStatus(registry)
    for _ in range(2):
        parts.update("cluster", PartFault.CREDENTIALS, {"tls": "no secret", "sasl": "empty secret"})
    parts.update("cluster", PartFault.ENTRY, {"tls": "bad value"})
    assert samples_of(registry, NAME) == {
        (name, "cluster", reason): 1
        for name, reason in (("tls", "credentials"), ("sasl", "credentials"), ("tls", "entry"))
    }
    parts.update("cluster", PartFault.CREDENTIALS, {"sasl": "no secret"})
    parts.update("cluster", PartFault.CREDENTIALS, {})
    assert samples_of(registry, NAME) == {("tls", "cluster", "entry"): 1}
    assert caplog.messages == [
        "cluster tls: no secret",
        "cluster sasl: empty secret",
        "cluster tls: bad value",
        "cluster sasl: no secret",
        "cluster tls: the problem is gone",
        "cluster sasl: the problem is gone",
    ]
