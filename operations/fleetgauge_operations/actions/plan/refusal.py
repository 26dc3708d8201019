"""Refusals: the fail-safe that forbids an action, and why."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from fleetgauge_core.metadata import TopicPartition

#: Maximum number of partitions or topics that a refusal names.
MAX_NAMED = 3


class RefusalReason(StrEnum):
    """The fail-safes, by the name that scripts read, in the order in which refusals are reported."""

    NOT_REGISTERED = "not_registered"
    FENCED = "fenced"
    NOTHING_TO_TAKE = "nothing_to_take"
    NO_FINDING = "no_finding"
    TOO_YOUNG = "too_young"
    NOT_MEASURED = "not_measured"
    NO_WATCH = "no_watch"
    SECOND_SICK = "second_sick"
    OTHER_FENCED = "other_fenced"
    ONLY_REPLICA = "only_replica"
    MIN_IN_SYNC = "min_in_sync"
    MOVING = "moving"
    ROLLING = "rolling"
    PLANNED = "planned"
    ALREADY = "already"
    OTHER_BROKER = "other_broker"
    OTHER_ZONE = "other_zone"
    CIRCUIT_OPEN = "circuit_open"
    TOO_SOON = "too_soon"
    TOO_MANY = "too_many"
    OFF = "off"
    PROPOSED_ONLY = "proposed_only"
    NO_RESTART = "no_restart"
    THROTTLED = "throttled"
    NOT_IN_SYNC = "not_in_sync"
    STILL_SICK = "still_sick"
    EXHAUSTED = "exhausted"
    HARMFUL = "harmful"


@dataclass(frozen=True, slots=True)
class Refusal:
    """The fail-safe that forbids an action or its undo, and an explanation for the operator."""

    reason: RefusalReason
    explanation: str


def format_partitions(partitions: Collection[TopicPartition]) -> str:
    """Return the first partitions by name, and how many more there are."""
    names = [f"{topic}-{number}" for topic, number in sorted(partitions)[:MAX_NAMED]]
    more = len(partitions) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")
