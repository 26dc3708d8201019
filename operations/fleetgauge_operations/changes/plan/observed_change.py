"""A change that a comparison of two observations shows."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from fleetgauge_core.tables import ChangeKind, ChangePhase

#: More changes of one kind at one look are one change with their number.
MAX_CHANGES_OF_KIND = 100


@dataclass(frozen=True, slots=True)
class ObservedChange:
    """A change of a cluster, of a broker or of a topic; ``before``, ``after`` and ``evidence`` are JSON
    values.

    A change that HAPPENED did so at some time from ``starts``, when its previous state was seen last, to
    ``ends``, when the present state was seen first. The others last from ``starts`` to ``ends``, None as long
    as they last. ``key`` tells the changes of one kind and subject with the same start apart.
    """

    kind: ChangeKind
    starts: datetime
    ends: datetime | None
    broker_id: int | None = None
    topic: str | None = None
    before: Any = None
    after: Any = None
    evidence: Mapping[str, Any] = field(default_factory=dict)
    phase: ChangePhase = ChangePhase.HAPPENED
    key: str = ""


def limit_changes(changes: Iterable[ObservedChange]) -> tuple[ObservedChange, ...]:
    """Replace many changes of one kind by one that counts them, unless they last."""
    by_kind: dict[tuple[ChangeKind, ChangePhase], list[ObservedChange]] = {}
    for change in changes:
        by_kind.setdefault((change.kind, change.phase), []).append(change)
    return tuple(
        change
        for (_, phase), alike in by_kind.items()
        for change in ([_summarize(alike)] if _is_limited(phase, alike) else alike)
    )


def _is_limited(phase: ChangePhase, alike: list[ObservedChange]) -> bool:
    # What was begun would never end if it had no record of its own.
    return phase is ChangePhase.HAPPENED and len(alike) > MAX_CHANGES_OF_KIND


def _summarize(alike: list[ObservedChange]) -> ObservedChange:
    topics = sorted({change.topic for change in alike if change.topic})
    return ObservedChange(
        alike[0].kind,
        min(change.starts for change in alike),
        max((change.ends for change in alike if change.ends), default=None),
        after={"changes": len(alike)},
        evidence={"topics": topics[:MAX_CHANGES_OF_KIND]},
        phase=alike[0].phase,
    )
