"""Decoding of records from the telemetry topics."""

import pytest

from fleetgauge_core.detection import Finding, HealthState
from fleetgauge_core.detection.record_reader import decode_finding, decode_pulse
from tests.unit.core.detection.pulses import broker, pulse
from tests.unit.operations.watch.sample_findings import PATH, cleared, opened


@pytest.mark.parametrize("finding", [opened(), cleared()], ids=["opened", "cleared"])
def test_a_finding_survives_encoding_and_decoding(finding: Finding) -> None:
    assert decode_finding(finding.event.encode()) == finding


def test_a_pulse_survives_encoding_and_decoding() -> None:
    assert decode_pulse(pulse(0, broker(1)).encode()) == pulse(0, broker(1))


def test_an_invalid_record_is_skipped_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert decode_finding(b"noise") is None
    assert decode_pulse(opened(PATH, HealthState.PATH).event.encode()) is None
    messages = [record.getMessage().partition(":")[0] for record in caplog.records]
    assert messages == ["skipped an invalid health event", "skipped an invalid probe pulse"]
