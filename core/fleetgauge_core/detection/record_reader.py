"""Records that a watch reads: what cannot be read is one line in the log, and never stops it."""

import logging
from datetime import datetime

from fleetgauge_core.contract import (
    ContractError,
    HealthEvent,
    ProbeMinute,
    ProbePulse,
)
from fleetgauge_core.detection import Finding, recalled

_log = logging.getLogger("fleetgauge.watch")


def pulse_in(value: bytes) -> ProbePulse | None:
    """None for what is no pulse."""
    try:
        return ProbePulse.decode(value)
    except ContractError as error:
        _log.warning("a pulse was passed over: %s", error)
        return None


def minute_in(value: bytes) -> ProbeMinute | None:
    """None for what is no minute, or claims more successes than it attempted."""
    try:
        record = ProbeMinute.decode(value)
    except ContractError as error:
        _log.warning("a minute was passed over: %s", error)
        return None
    return record if len(record.success_us) <= record.attempted else None


def finding_in(value: bytes) -> Finding | None:
    """What a health event tells of; None for what is none, or tells of what only a newer version knows."""
    try:
        return recalled(HealthEvent.decode(value))
    except ContractError as error:
        _log.warning("a health event was passed over: %s", error)
        return None


class LastChange:
    """When each finding changed last. A watch that stood still, or was cut off, writes late what is over."""

    def __init__(self) -> None:
        self._at: dict[str, datetime] = {}

    def of(self, finding: Finding) -> datetime | None:
        return self._at.get(finding.event.fingerprint)

    def note(self, finding: Finding) -> None:
        self._at[finding.event.fingerprint] = finding.event.at

    def follows(self, finding: Finding) -> bool:
        """Whether it is no older than what is known of the same; then it is what is known."""
        known = self.of(finding)
        if known and finding.event.at < known:
            return False
        self.note(finding)
        return True
