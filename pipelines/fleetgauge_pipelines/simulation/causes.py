"""The causes of a simulated week's bad minutes, by the findings and changes that would have been recorded."""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fleetgauge_core.contract import HealthEvent
from fleetgauge_core.slo.causes import CauseInterval, HealthTransition, find_cause
from fleetgauge_core.slo.change_causes import RecordedChange, build_cause_intervals
from fleetgauge_pipelines.simulation.fleet import SimulatedFleet
from fleetgauge_pipelines.simulation.silver import compute_client_censored_p99_us
from fleetgauge_pipelines.simulation.simulated_week import SimulatedWeek

_MINUTE = timedelta(minutes=1)
_CHANGE_FIELDS = tuple(field.name for field in fields(RecordedChange))


def find_cause_intervals(
    simulated: SimulatedFleet, cluster: int, events: Iterable[HealthEvent]
) -> list[CauseInterval]:
    """Return the intervals that the health events of a cluster, and its changes, explain."""
    profile = simulated.profile(cluster)
    changes = (
        record
        for change in (*simulated.changes(cluster), *simulated.releases())
        for record in change.records()
    )
    intervals = build_cause_intervals(
        (
            HealthTransition(event.cluster_id, event.broker_id, event.fingerprint, event.at, event.to_state)
            for event in events
        ),
        (RecordedChange(*(getattr(record, name) for name in _CHANGE_FIELDS)) for record in changes),
        {profile.cluster_id: (("region", profile.region),)},
    )
    return [interval for interval in intervals if interval.cluster_id == profile.cluster_id]


def find_causes(week: SimulatedWeek, objective_us: int, intervals: Sequence[CauseInterval]) -> NDArray[Any]:
    """Return the column ``cause`` of silver/cluster_minutes of a week, masked where a minute is not bad."""
    over = (compute_client_censored_p99_us(week) > objective_us) & ~week.silent[:, None]
    ends = week.start + len(week.silent) * _MINUTE
    overlapping = [
        interval
        for interval in intervals
        if interval.starts < ends and (interval.ends is None or interval.ends > week.start)
    ]
    brokers = np.asarray(week.profile.brokers)
    causes = np.full(len(week.silent), "", dtype=object)
    for minute in np.flatnonzero(over.any(axis=1)):
        homes = brokers[over[minute]].tolist()
        causes[minute] = find_cause(week.start + int(minute) * _MINUTE, homes, False, overlapping)
    return np.ma.masked_array(causes, causes == "")
