"""Whether a new correction would exclude anything of what a lake holds."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow.compute as pc

from fleetgauge_core.lake.corrections import CorrectionStore
from fleetgauge_core.lake.table_store import TableRow, TableStore
from fleetgauge_core.slo.correction_effect import (
    MAX_DELAY,
    CorrectableFleet,
    explain_missing_effect,
    last_end,
)
from fleetgauge_core.slo.corrections import Correction, parse_correction
from fleetgauge_core.tables import BROKER_MINUTES, CLUSTER_MINUTES

#: A broker that is still to be maintained was measured this long ago at most.
_KNOWN_FOR = timedelta(days=7)


def explain_ineffective_correction(
    row: TableRow, lake: str, fleet: CorrectableFleet, now: datetime
) -> str | None:
    """Return why a new row of ops/corrections would exclude nothing; None if it may exclude something.

    Minutes that are still to come, or that may arrive late, count as if they were measured.

    Raises: TableStoreError if a table cannot be read.
    """
    correction = parse_correction(row)
    rows = CorrectionStore(lake).rows()
    others = [parse_correction(other) for other in rows if other["withdrawn_at"] is None]
    reason = explain_missing_effect(correction, fleet, others)
    if reason is not None:
        return reason
    minutes = _MeasuredMinutes(
        TableStore(lake, CLUSTER_MINUTES, create=True), TableStore(lake, BROKER_MINUTES, create=True)
    )
    reasons = [
        minutes.explain_absence(correction, cluster, now) for cluster in fleet.find_targets(correction)
    ]
    return next((reason for reason in reasons if reason), None) if all(reasons) else None


@dataclass(frozen=True, slots=True)
class _MeasuredMinutes:
    """The minutes of a lake; there are none where a table does not exist yet."""

    clusters: TableStore
    brokers: TableStore

    def explain_absence(self, correction: Correction, cluster_id: str, now: datetime) -> str | None:
        """Return why the correction excludes nothing of a cluster; None if it may exclude something."""
        of_cluster = pc.field("cluster_id") == cluster_id
        ends = last_end(correction)
        until = now if ends is None else min(ends, now)
        within = (pc.field("minute") >= correction.starts) & (pc.field("minute") < until)
        is_over = ends is not None and ends <= now
        if self.clusters.contains(of_cluster & within):
            if correction.broker_id is None:
                return None
            if self.brokers.contains(of_cluster & within & (pc.field("broker_id") == correction.broker_id)):
                return None
            if is_over:
                return f"broker {correction.broker_id} was not measured within the range"
        elif is_over and ends is not None and self._is_complete(of_cluster, ends, now):
            return (
                f"no minute of {cluster_id} from {correction.starts:%FT%RZ} to {ends:%FT%RZ} is in the lake"
            )
        return self._explain_unknown_broker(correction, of_cluster, now)

    def _is_complete(self, of_cluster: Any, ends: datetime, now: datetime) -> bool:
        """Return whether no more minutes before ``ends`` are expected."""
        if not self.clusters.exists:
            return False
        return ends <= now - MAX_DELAY or self.clusters.contains(of_cluster & (pc.field("minute") >= ends))

    def _explain_unknown_broker(self, correction: Correction, of_cluster: Any, now: datetime) -> str | None:
        if correction.broker_id is None:
            return None
        recent = of_cluster & (pc.field("minute") >= now - _KNOWN_FOR)
        if not self.brokers.contains(recent):
            return None
        if self.brokers.contains(recent & (pc.field("broker_id") == correction.broker_id)):
            return None
        return f"broker {correction.broker_id} was not measured in the last {_KNOWN_FOR.days} days"
