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
    """Replace many changes of one kind by one that counts them, so that a look has a bounded number."""
    by_kind: dict[tuple[ChangeKind, ChangePhase], list[ObservedChange]] = {}
    for change in changes:
        by_kind.setdefault((change.kind, change.phase), []).append(change)
    return tuple(
        change
        for alike in by_kind.values()
        for change in (alike if len(alike) <= MAX_CHANGES_OF_KIND else [_summarize(alike)])
    )


def _summarize(alike: list[ObservedChange]) -> ObservedChange:
    topics = sorted({change.topic for change in alike if change.topic})
    return ObservedChange(
        alike[0].kind,
        min(change.starts for change in alike),
        alike[-1].ends,
        after={"changes": len(alike)},
        evidence={"topics": topics[:MAX_CHANGES_OF_KIND]},
        phase=alike[0].phase,
    )
