import pytest

from fleetgauge_core.detection import Finding, Phase
from fleetgauge_core.detection.record_reader import finding_in, pulse_in
from tests.unit.core.detection.pulses import broker, pulse
from tests.unit.operations.watch.tellings import PATH, cleared, named


@pytest.mark.parametrize("finding", [named(), cleared()], ids=["named", "cleared"])
def test_what_was_found_comes_back_as_it_was(finding: Finding) -> None:
    assert finding_in(finding.event.encode()) == finding


def test_a_pulse_comes_back_as_it_was() -> None:
    assert pulse_in(pulse(0, broker(1)).encode()) == pulse(0, broker(1))


def test_noise_is_passed_over_with_a_line(caplog: pytest.LogCaptureFixture) -> None:
    assert finding_in(b"noise") is None
    assert pulse_in(named(PATH, Phase.PATH).event.encode()) is None
    kinds = [one.getMessage().partition(":")[0] for one in caplog.records]
    assert kinds == ["a health event was passed over", "a pulse was passed over"]
