"""Decoding of pulses, minutes and health events; an invalid record is logged and skipped."""

import logging
from datetime import datetime

from fleetgauge_core.contract import (
    HealthEvent,
    ProbeMinute,
    ProbePulse,
    RecordDecodeError,
)
from fleetgauge_core.detection import Finding, parse_finding

_log = logging.getLogger("fleetgauge.watch")


def decode_pulse(value: bytes) -> ProbePulse | None:
    """Return the pulse, or None if the value is not a valid one."""
    try:
        return ProbePulse.decode(value)
    except RecordDecodeError as error:
        _log.warning("skipped an invalid probe pulse: %s", error)
        return None


def decode_minute(value: bytes) -> ProbeMinute | None:
    """Return the probe minute, or None if the value is invalid or has more successes than attempts."""
    try:
        record = ProbeMinute.decode(value)
    except RecordDecodeError as error:
        _log.warning("skipped an invalid probe minute: %s", error)
        return None
    return record if len(record.success_us) <= record.attempted else None


def decode_finding(value: bytes) -> Finding | None:
    """Return the finding of a health event, or None if it is invalid or has a state of a newer version."""
    try:
        return parse_finding(HealthEvent.decode(value))
    except RecordDecodeError as error:
        _log.warning("skipped an invalid health event: %s", error)
        return None


class LatestFindingTimes:
    """The time of the latest finding by fingerprint.

    A watch that was paused or partitioned may write outdated findings late; they must not replace newer ones.
    """

    def __init__(self) -> None:
        self._times: dict[str, datetime] = {}

    def get(self, finding: Finding) -> datetime | None:
        """Return the time of the latest recorded finding with the same fingerprint, if any."""
        return self._times.get(finding.event.fingerprint)

    def record(self, finding: Finding) -> None:
        """Record the finding as the latest of its fingerprint."""
        self._times[finding.event.fingerprint] = finding.event.at

    def record_if_newer(self, finding: Finding) -> bool:
        """Record the finding unless an already recorded one is newer; return whether it was recorded."""
        latest = self.get(finding)
        if latest and finding.event.at < latest:
            return False
        self.record(finding)
        return True
