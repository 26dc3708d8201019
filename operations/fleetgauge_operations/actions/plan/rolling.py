"""Which clusters are being rolled: brokers are restarted there one after the other."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from fleetgauge_core.slo.change_causes import RecordedChange, is_orderly_restart
from fleetgauge_core.tables import ActionKind
from fleetgauge_operations.actions.plan.case import ActionCase

#: The next broker of a roll is restarted within this.
ROLL_GOES_ON_WITHIN = timedelta(minutes=10)
#: A case may end before the restart that it ordered was seen.
_TOLERANCE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class RollAction:
    """A rolling restart that ops/actions records; ``ends`` is None until it ends."""

    cluster_id: str
    starts: datetime
    ends: datetime | None

    def is_in_progress_at(self, now: datetime) -> bool:
        """Return whether it has begun and not ended."""
        return self.starts <= now and (self.ends is None or self.ends > now)


def find_rolling_clusters(
    rolls: Iterable[RollAction],
    changes: Iterable[RecordedChange],
    cases: Iterable[ActionCase],
    now: datetime,
) -> frozenset[str]:
    """Return the clusters with a roll in progress.

    An orderly restart in the last ten minutes is one too, whoever ordered it, unless it belongs to a case.
    """
    cases = tuple(cases)
    recorded = (roll.cluster_id for roll in rolls if roll.is_in_progress_at(now))
    observed = (
        change.cluster_id
        for change in changes
        if change.cluster_id is not None
        and is_orderly_restart(change)
        and change.ends is not None
        and change.ends <= now < change.ends + ROLL_GOES_ON_WITHIN
        and not any(_has_ordered(case, change) for case in cases)
    )
    return frozenset((*recorded, *observed))


def _has_ordered(case: ActionCase, restart: RecordedChange) -> bool:
    return (
        case.kind in (ActionKind.RESTART, ActionKind.QUARANTINE_RESTART)
        and case.has_changed_cluster
        and (case.cluster_id, case.broker_id) == (restart.cluster_id, restart.broker_id)
        and case.began <= restart.starts
        and (case.ended is None or case.ended + _TOLERANCE > restart.starts)
    )
