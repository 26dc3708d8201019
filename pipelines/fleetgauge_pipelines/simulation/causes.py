"""Why a part's bad minutes were bad, as far as the watch would have said."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fleetgauge_core.slo.causes import (
    Event,
    Reason,
    cause_of,
    findings,
)
from fleetgauge_pipelines.simulation.events import health_events
from fleetgauge_pipelines.simulation.incidents import Incident
from fleetgauge_pipelines.simulation.part import Part
from fleetgauge_pipelines.simulation.silver import client_censored_p99_us

_MINUTE = timedelta(minutes=1)


def reasons_of(incidents: Sequence[Incident]) -> list[Reason]:
    """What the health events of a cluster's incidents explain."""
    events = (event for incident in incidents for event in health_events(incident))
    return findings(
        Event(one.cluster_id, one.broker_id, one.fingerprint, one.at, one.to_state) for one in events
    )


def causes(part: Part, objective_us: int, reasons: Sequence[Reason]) -> NDArray[Any]:
    """silver/cluster_minutes.cause of a part, a row a minute."""
    over = (client_censored_p99_us(part) > objective_us) & ~part.silent[:, None]
    ends = part.start + len(part.silent) * _MINUTE
    near = [one for one in reasons if one.starts < ends and (one.ends is None or one.ends > part.start)]
    brokers = np.asarray(part.profile.brokers)
    found = np.full(len(part.silent), "", dtype=object)
    for minute in np.flatnonzero(over.any(axis=1)):
        homes = brokers[over[minute]].tolist()
        found[minute] = cause_of(part.start + int(minute) * _MINUTE, homes, False, near)
    return np.ma.masked_array(found, found == "")
