"""Random corrections, actions, findings and changes around the minutes of random clusters."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

from tests.oracle.cause_rules import FINDING_KINDS, REPORTED, VANTAGE_KINDS
from tests.oracle.operations import Operations

Row = dict[str, Any]
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
#: "election" is an action that is never a cause.
ACTIONS = ("roll", "reassignment", "throttle", "election")
#: A setting that changes is never a cause.
OBSERVED = ("broker_restarted", "broker_restarted", "reassignment", "throttle", "setting_changed")


@dataclass(frozen=True, slots=True)
class Scope:
    """A cluster, its minutes, and the (segment, value) pairs that it belongs to."""

    cluster_id: str
    brokers: Sequence[int]
    segments: Sequence[tuple[str, str]]
    start: datetime
    minutes: int
    zone: str


def random_operations(rng: Random, scopes: Sequence[Scope]) -> Operations:
    """Return corrections, actions, findings and changes; about half of the clusters have some of each."""
    return Operations(
        corrections=tuple(
            _correction(rng, scope, f"correction-{number}-{which}")
            for number, scope in enumerate(scopes)
            for which in range(rng.choice([0, 0, 1, 2]))
        ),
        actions=tuple(
            _action(rng, scope, f"action-{number}-{which}")
            for number, scope in enumerate(scopes)
            for which in range(rng.choice([0, 0, 1, 2]))
        ),
        health_events=tuple(
            event
            for number, scope in enumerate(scopes)
            for which in range(rng.choice([0, 0, 1, 3]))
            for event in _finding(rng, scope, f"finding-{number}-{which}")
        ),
        changes=tuple(
            record
            for number, scope in enumerate(scopes)
            for which in range(rng.choice([0, 0, 1, 3]))
            for record in _change(rng, scope, f"change-{number}-{which}")
        ),
    )


def _span(rng: Random, scope: Scope) -> tuple[datetime, datetime]:
    """Return the start and end of a few minutes, which are often not whole minutes."""
    offset = rng.choice([0, 0, 1, 30]) * SECOND
    starts = scope.start + rng.randrange(-3, scope.minutes) * MINUTE + offset
    return starts, starts + rng.randint(1, 9) * MINUTE + rng.choice([0, 0, 29, 59]) * SECOND


def _correction(rng: Random, scope: Scope, correction_id: str) -> Row:
    starts, ends = _span(rng, scope)
    recurs = rng.choice([None, None, "daily", "weekly"])
    until = None
    if recurs is not None:
        until = rng.choice([None, starts, starts + SECOND, ends + timedelta(days=30)])
        starts, ends = _earlier(rng, starts, ends, recurs, scope.zone)
        until = until if until is not None and until > starts else None
    kind = rng.choice(["broker", "cluster", "segment"])
    segment, value = rng.choice(scope.segments) if kind == "segment" else (None, None)
    withdrawn = rng.random() < 0.15
    return {
        "correction_id": correction_id,
        "scope": kind,
        "cluster_id": None if kind == "segment" else scope.cluster_id,
        "broker_id": rng.choice(scope.brokers) if kind == "broker" else None,
        "segment": segment,
        "segment_value": value,
        "starts": starts,
        "ends": ends,
        "recurs": recurs,
        "recurs_until": until,
        "reason": "maintenance",
        "author": "sre",
        "created_at": scope.start,
        "withdrawn_at": scope.start if withdrawn else None,
        "withdrawn_by": "sre" if withdrawn else None,
    }


def _earlier(
    rng: Random, starts: datetime, ends: datetime, recurs: str, zone: str
) -> tuple[datetime, datetime]:
    """Return an earlier occurrence: the same local time some days or weeks before, with the same length."""
    back = rng.randrange(4) * timedelta(days=1 if recurs == "daily" else 7)
    local_start = starts.astimezone(ZoneInfo(zone)).replace(tzinfo=None) - back
    first = local_start.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
    return first, first + (ends - starts)


def _action(rng: Random, scope: Scope, action_id: str) -> Row:
    starts, ends = _span(rng, scope)
    return {
        "action_id": action_id,
        "kind": rng.choice(ACTIONS),
        "cluster_id": scope.cluster_id,
        "broker_id": rng.choice([None, *scope.brokers]),
        "starts": starts,
        "ends": ends if rng.random() < 0.8 else None,
        "reason": "planned",
        "author": "sre",
        "detail": "{}",
    }


def _change(rng: Random, scope: Scope, change_id: str) -> Iterator[Row]:
    """Yield the records of one change, which may not end."""
    kind = rng.choice([*OBSERVED, rng.choice(REPORTED)])
    starts, ends = _span(rng, scope)
    is_of_segment = kind in REPORTED and rng.random() < 0.4
    segment, value = rng.choice(scope.segments) if is_of_segment else (None, None)
    is_of_broker = kind == "broker_restarted" or (kind in REPORTED and rng.random() < 0.4)
    is_lasting = kind in ("reassignment", "throttle")
    moments = [(starts, None), (ends, ends)] if is_lasting else [(ends, ends)]
    for number, (at, end) in enumerate(moments[: rng.choice([1, 2])]):
        yield {
            "event_id": f"{change_id}-{number}",
            "change_id": change_id,
            "cluster_id": None if is_of_segment else scope.cluster_id,
            "broker_id": rng.choice(scope.brokers) if is_of_broker and not is_of_segment else None,
            "segment": segment,
            "segment_value": value,
            "kind": kind,
            "phase": rng.choice(["happened", "happened", "cancelled"]) if end else "begun",
            "at": at,
            "starts": starts,
            "ends": end,
            "evidence": json.dumps({"orderly": rng.choice([True, True, False, None])}),
            "source": "observer",
        }


def _finding(rng: Random, scope: Scope, fingerprint: str) -> Iterator[Row]:
    """Yield the events of one finding, which may not be cleared at the end."""
    broker = rng.choice([None, *scope.brokers])
    kind = rng.choice([*FINDING_KINDS, *VANTAGE_KINDS])
    at = scope.start + rng.randint(-180, 60 * scope.minutes) * SECOND
    state = "HEALTHY"
    for number, following in enumerate(
        rng.choice([("SUSPECT", kind, "HEALTHY"), (kind,), (kind, "HEALTHY")])
    ):
        yield {
            "event_id": f"{fingerprint}-{number}",
            "fingerprint": fingerprint,
            "cluster_id": scope.cluster_id,
            "broker_id": broker,
            "at": at,
            "from_state": state,
            "to_state": following,
            "kind": kind,
            "evidence": "{}",
        }
        state = following
        at += rng.choice([rng.randint(1, 60), rng.randint(60, 400)]) * SECOND
