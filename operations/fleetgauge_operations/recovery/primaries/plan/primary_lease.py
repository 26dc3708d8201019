"""Who says to be the primary of what, as a store of the user's own says it. Pure."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from fleetgauge_operations.recovery.plan.map_case import printable

_EXAMPLE = '{"service": "billing", "primary": "north", "epoch": 3, "lease_until": "2026-03-02T10:00:00Z"}'
_LARGEST_EPOCH = 2**63 - 1


class ClaimsError(Exception):
    """Claims that cannot be read, in one line: where, what, and how to mend it."""


@dataclass(frozen=True, slots=True)
class Claim:
    """``primary``: a region or a cluster's id. ``lease_until``: None where it holds until it is gone."""

    service: str
    primary: str
    epoch: int | None = None
    lease_until: datetime | None = None

    def holds(self, now: datetime) -> bool:
        """Whether its lease is not over."""
        return self.lease_until is None or self.lease_until > now

    @property
    def words(self) -> str:
        """For a line."""
        epoch = "without an epoch" if self.epoch is None else f"at epoch {self.epoch}"
        end = "without an end"
        if self.lease_until:
            end = f"until {self.lease_until.isoformat(timespec='seconds').replace('+00:00', 'Z')}"
        return f"{printable(self.primary)} {epoch}, {end}"


def next_epoch(claims: Iterable[Claim]) -> int:
    """After all of these, over or not."""
    return max((one.epoch for one in claims if one.epoch is not None), default=0) + 1


def listed(text: bytes, where: str) -> tuple[Claim, ...]:
    """A list of them. Raises ClaimsError."""
    try:
        found = _json(text, where)
        if not isinstance(found, list):
            raise ClaimsError(f"{where}: {_shown(found)} is no list: print [{_EXAMPLE}]")
        return tuple(_claim(one, f"{where}: [{number}]") for number, one in enumerate(found))
    except RecursionError as error:
        raise ClaimsError(f"{where}: brackets within brackets without end: print [{_EXAMPLE}]") from error


def single(text: bytes, where: str) -> Claim:
    """One of them. Raises ClaimsError."""
    try:
        return _claim(_json(text, where), where)
    except RecursionError as error:
        raise ClaimsError(f"{where}: brackets within brackets without end: write {_EXAMPLE}") from error


def _json(text: bytes, where: str) -> Any:
    try:
        return json.loads(text.decode(), object_pairs_hook=lambda pairs: _once(pairs, where))
    except UnicodeDecodeError as error:
        raise ClaimsError(f"{where}: not text: give JSON in UTF-8") from error
    except json.JSONDecodeError as error:
        mend = f"give {_EXAMPLE}, or a list of such"
        raise ClaimsError(f"{where}: line {error.lineno} is not JSON: {error.msg}: {mend}") from error
    except ValueError as error:
        raise ClaimsError(f"{where}: a number of thousands of digits: give an epoch of 64 bits") from error


def _once(pairs: list[tuple[str, Any]], where: str) -> dict[str, Any]:
    """Of two primaries in one claim nobody knows which is meant."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ClaimsError(f"{where}: {printable(twice)} is there twice: leave one")
    return found


def _claim(value: Any, where: str) -> Claim:
    if not isinstance(value, dict):
        raise ClaimsError(f"{where}: {_shown(value)} is no claim: give {_EXAMPLE}")
    return Claim(
        service=_name(value, "service", where),
        primary=_name(value, "primary", where),
        epoch=_epoch(value.get("epoch"), where),
        lease_until=_instant(value.get("lease_until"), where),
    )


def _name(claim: dict[str, Any], key: str, where: str) -> str:
    if key not in claim:
        raise ClaimsError(f"{where}: {key} is missing: a claim has service and primary")
    value = claim[key]
    if not isinstance(value, str) or not value:
        raise ClaimsError(f"{where}: {key} is {_shown(value)}: give a name")
    return value


def _epoch(value: Any, where: str) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _LARGEST_EPOCH:
        raise ClaimsError(f"{where}: epoch is {_shown(value)}: give a whole number, or leave it out")
    return value


def _instant(value: Any, where: str) -> datetime | None:
    if value is None:
        return None
    mend = "give a time with its zone, such as 2026-03-02T10:00:00Z, or leave it out"
    try:
        at = datetime.fromisoformat(value)
        if at.tzinfo is not None:
            return at.astimezone(UTC)
    except (TypeError, ValueError, OverflowError) as error:
        raise ClaimsError(f"{where}: lease_until is {_shown(value)}: {mend}") from error
    raise ClaimsError(f"{where}: lease_until is {_shown(value)}: {mend}")


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
