"""Leases that name the primary of a service, parsed from an external store. Pure."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from fleetgauge_core.errors import OperationalError
from fleetgauge_operations.recovery.plan.map_case import escape_unprintable

_EXAMPLE = '{"service": "billing", "primary": "north", "epoch": 3, "lease_until": "2026-03-02T10:00:00Z"}'
_LARGEST_EPOCH = 2**63 - 1


class PrimaryLeaseError(OperationalError):
    """Leases cannot be read; one line that names the place, the problem and the fix."""


@dataclass(frozen=True, slots=True)
class PrimaryLease:
    """A lease that makes a region or cluster the primary of a service.

    ``primary`` is the name of a region or the id of a cluster. Without ``lease_until`` the lease is active
    until it is deleted.
    """

    service: str
    primary: str
    epoch: int | None = None
    lease_until: datetime | None = None

    def is_active(self, now: datetime) -> bool:
        """Return whether the lease has not expired."""
        return self.lease_until is None or self.lease_until > now

    @property
    def description(self) -> str:
        """The primary, epoch and expiry, for a line of output."""
        epoch = "without an epoch" if self.epoch is None else f"at epoch {self.epoch}"
        expiry = "without expiry"
        if self.lease_until:
            expiry = f"until {self.lease_until.isoformat(timespec='seconds').replace('+00:00', 'Z')}"
        return f"{escape_unprintable(self.primary)} {epoch}, {expiry}"


def next_epoch(leases: Iterable[PrimaryLease]) -> int:
    """Return an epoch higher than that of every lease, expired or not."""
    return max((lease.epoch for lease in leases if lease.epoch is not None), default=0) + 1


def parse_leases(text: bytes, where: str) -> tuple[PrimaryLease, ...]:
    """Parse a JSON list of leases. Raises PrimaryLeaseError."""
    try:
        document = _parse_json(text, where)
        if not isinstance(document, list):
            raise PrimaryLeaseError(f"{where}: {_abbreviate(document)} is not a list: print [{_EXAMPLE}]")
        return tuple(_parse_lease(lease, f"{where}: [{index}]") for index, lease in enumerate(document))
    except RecursionError as error:
        raise PrimaryLeaseError(f"{where}: JSON is nested too deeply: print [{_EXAMPLE}]") from error


def parse_lease(text: bytes, where: str) -> PrimaryLease:
    """Parse a lease from a JSON object. Raises PrimaryLeaseError."""
    try:
        return _parse_lease(_parse_json(text, where), where)
    except RecursionError as error:
        raise PrimaryLeaseError(f"{where}: JSON is nested too deeply: write {_EXAMPLE}") from error


def _parse_json(text: bytes, where: str) -> Any:
    try:
        return json.loads(text.decode(), object_pairs_hook=lambda pairs: _reject_duplicate_keys(pairs, where))
    except UnicodeDecodeError as error:
        raise PrimaryLeaseError(f"{where}: not text: give JSON in UTF-8") from error
    except json.JSONDecodeError as error:
        fix = f"give {_EXAMPLE}, or a list of such objects"
        raise PrimaryLeaseError(
            f"{where}: line {error.lineno} is not valid JSON: {error.msg}: {fix}"
        ) from error
    except ValueError as error:
        raise PrimaryLeaseError(f"{where}: a number is too long: give an epoch of 64 bits") from error


def _reject_duplicate_keys(pairs: list[tuple[str, Any]], where: str) -> dict[str, Any]:
    """Reject a lease with two primaries, because it is unknown which one is meant."""
    document = dict(pairs)
    if len(document) < len(pairs):
        names = [name for name, _ in pairs]
        duplicate = next(name for name in names if names.count(name) > 1)
        raise PrimaryLeaseError(f"{where}: {escape_unprintable(duplicate)} is given twice: remove one")
    return document


def _parse_lease(value: Any, where: str) -> PrimaryLease:
    if not isinstance(value, dict):
        raise PrimaryLeaseError(f"{where}: {_abbreviate(value)} is not a lease: give {_EXAMPLE}")
    return PrimaryLease(
        service=_parse_name(value, "service", where),
        primary=_parse_name(value, "primary", where),
        epoch=_parse_epoch(value.get("epoch"), where),
        lease_until=_parse_expiry(value.get("lease_until"), where),
    )


def _parse_name(lease: dict[str, Any], key: str, where: str) -> str:
    if key not in lease:
        raise PrimaryLeaseError(f"{where}: {key} is missing: a lease has service and primary")
    value = lease[key]
    if not isinstance(value, str) or not value:
        raise PrimaryLeaseError(f"{where}: {key} is {_abbreviate(value)}: give a name")
    return value


def _parse_epoch(value: Any, where: str) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _LARGEST_EPOCH:
        raise PrimaryLeaseError(
            f"{where}: epoch is {_abbreviate(value)}: give a whole number, or omit the epoch"
        )
    return value


def _parse_expiry(value: Any, where: str) -> datetime | None:
    if value is None:
        return None
    fix = "give a time with its zone, such as 2026-03-02T10:00:00Z, or omit it"
    try:
        at = datetime.fromisoformat(value)
        if at.tzinfo is not None:
            return at.astimezone(UTC)
    except (TypeError, ValueError, OverflowError) as error:
        raise PrimaryLeaseError(f"{where}: lease_until is {_abbreviate(value)}: {fix}") from error
    raise PrimaryLeaseError(f"{where}: lease_until is {_abbreviate(value)}: {fix}")


def _abbreviate(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
