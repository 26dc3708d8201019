"""Incidents as a watch would have seen them; times are seconds after noon."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from fleetgauge_core.contract import ProbePulse
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

BEGINS = at(30)


def hang(from_s: int = 60, to_s: int = 90, until_s: int = 180) -> list[ProbePulse]:
    """Of broker 1, beside a broker that is well."""
    return [
        pulse(s, hung(s - from_s, 1) if from_s < s <= to_s else broker(1), broker(2))
        for s in range(0, until_s, 5)
    ]


def watched(pulses: Sequence[ProbePulse], looks_every: timedelta = timedelta(seconds=1)) -> list[Finding]:
    """What a watch names and clears that hears these and looks for silence every so often."""
    now = pulses[0].emitted_at
    state, found = expect_pulses(FleetHealth(), ["orders"], now), list[Finding]()
    for one in pulses:
        while now < one.emitted_at:
            state, missing = detect_no_data(state, now)
            found += missing
            now += looks_every
        state, findings = fold_pulse(state, one)
        found += findings
    return [one for one in found if one.is_alert or one.is_cleared]


def incident(pulses: Sequence[ProbePulse], since: datetime = BEGINS, note: str = "") -> Incident:
    wanted = tuple(one for one in watched(pulses) if one.event.at >= since)
    return Incident("orders", since, pulses[-1].emitted_at, note, tuple(pulses), wanted)
