"""Incidents as a watch would have recorded them; times are seconds after noon."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from fleetgauge_core.contract import ClusterChange, ProbePulse
from fleetgauge_core.detection import (
    Finding,
    FleetHealth,
    detect_no_data,
    expect_pulses,
    fold_pulse,
)
from fleetgauge_operations.replay.incident import Incident
from tests.unit.core.detection.pulses import (
    at,
    broker,
    hung,
    pulse,
)

STARTS = at(30)


def build_hang_pulses(from_s: int = 60, to_s: int = 90, until_s: int = 180) -> list[ProbePulse]:
    """Return pulses in which broker 1 hangs, beside a healthy broker."""
    return [
        pulse(s, hung(s - from_s, 1) if from_s < s <= to_s else broker(1), broker(2))
        for s in range(0, until_s, 5)
    ]


def detect_as_watch(
    pulses: Sequence[ProbePulse], sweep_interval: timedelta = timedelta(seconds=1)
) -> list[Finding]:
    """Return what a watch reports that receives these pulses and checks for silence at this interval."""
    now = pulses[0].emitted_at
    state = expect_pulses(FleetHealth(), ["orders"], now)
    detected: list[Finding] = []
    for next_pulse in pulses:
        while now < next_pulse.emitted_at:
            state, no_data_findings = detect_no_data(state, now)
            detected += no_data_findings
            now += sweep_interval
        state, findings = fold_pulse(state, next_pulse)
        detected += findings
    return [finding for finding in detected if finding.is_alert or finding.is_cleared]


def build_incident(pulses: Sequence[ProbePulse], since: datetime = STARTS, note: str = "") -> Incident:
    """Return the incident of these pulses; it expects what a watch reports from ``since`` on."""
    expected = tuple(finding for finding in detect_as_watch(pulses) if finding.event.at >= since)
    until = pulses[-1].emitted_at
    deploy = ClusterChange(
        "event", "change", "orders", "deploy", "happened", since, since, since, "command", title="orders 2.4"
    )
    return Incident("orders", since, until, note, tuple(pulses), expected, (deploy,))
