"""The causes of stored cluster-minutes, computed again from other findings, changes and corrections."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fleetgauge_core.contract import Leg
from fleetgauge_core.slo.causes import find_cause
from fleetgauge_pipelines.transforms.lists import Ints
from fleetgauge_pipelines.transforms.records import to_minutes, to_time
from fleetgauge_pipelines.transforms.silver import ClusterWork

#: The columns of silver/broker_minutes that the rule needs.
BROKER_COLUMNS = (
    *("cluster_id", "broker_id", "leg", "minute"),
    *("latency_p99_censored_us", "measured", "agent_late"),
)


def recompute_causes(minutes: pa.Table, brokers: pa.Table, works: Sequence[ClusterWork]) -> pa.Table:
    """Return rows of silver/cluster_minutes with their causes; ``brokers`` are those minutes' rows."""
    brokers = brokers.filter(pc.equal(brokers["leg"], Leg.CLIENT.value))
    clusters = pa.array([work.span.cluster_id for work in works])
    objectives = np.array([work.latency_objective_us for work in works], np.int64)
    of_broker, of_minute = (
        _number(pc.index_in(rows["cluster_id"], clusters), to_minutes(rows["minute"]))
        for rows in (brokers, minutes)
    )
    order = np.argsort(of_broker, kind="stable")
    brokers, of_broker = brokers.take(pa.array(order)), of_broker[order]
    over = _is_over(brokers, objectives, of_broker) & np.asarray(brokers["measured"])
    late, ids = np.asarray(brokers["agent_late"]), np.asarray(brokers["broker_id"])
    causes: list[str | None] = [None] * minutes.num_rows
    for row in np.flatnonzero(_is_over(minutes, objectives, of_minute)).tolist():
        cluster, shifted = divmod(int(of_minute[row]), _MINUTES)
        lo, hi = np.searchsorted(of_broker, [of_minute[row], of_minute[row] + 1])
        causes[row] = find_cause(
            to_time(shifted - _MINUTES // 2),
            ids[lo:hi][over[lo:hi]].tolist(),
            bool(late[lo:hi].any()),
            works[cluster].intervals,
        )
    return minutes.set_column(
        minutes.column_names.index("cause"), minutes.schema.field("cause"), pa.array(causes, pa.string())
    )


#: There are fewer minutes between the years 1 and 9999, and as many before 1970 as after it.
_MINUTES = 2**34


def _number(cluster: pa.ChunkedArray, minute: Ints) -> Ints:
    return np.asarray(cluster, np.int64) * _MINUTES + minute + _MINUTES // 2


def _is_over(rows: pa.Table, objectives: Ints, number: Ints) -> np.ndarray:
    over = pc.greater(rows["latency_p99_censored_us"], pa.array(objectives[number // _MINUTES]))
    return np.asarray(over.fill_null(False))
