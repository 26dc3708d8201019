"""Records that a watch reads: what cannot be read is one line in the log, and never stops it."""

import logging

from fleetgauge_pipelines.detection import Finding, recalled
from fleetgauge_probes.contract import ContractError, HealthEvent, ProbeMinute, ProbePulse

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
