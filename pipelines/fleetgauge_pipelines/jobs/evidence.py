"""Evidence of closed weeks: the samples of the minutes that decided a week, kept after bronze has expired."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import functions as F

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.tables import EVIDENCE, PROBE_MINUTES
from fleetgauge_pipelines.io.lake import Lake, materialize
from fleetgauge_pipelines.io.small_frames import create_dataframe
from fleetgauge_pipelines.jobs.weeks import CorrectedWeeks
from fleetgauge_pipelines.transforms.evidence import DECIDED_DDL, collect_samples, find_deciding_brokers

Row = Mapping[str, Any]


class EvidenceWriter:
    """Keeps gold/evidence in step with the closed weeks."""

    def __init__(self, lake: Lake, fleet: Fleet) -> None:
        self._lake = lake
        self._agent_late_us = round(fleet.agent_late_ms * 1000)

    def update(self, weeks: CorrectedWeeks, changed: Sequence[Row]) -> int:
        """Store the samples that decided the closed ones of the ``changed`` rows of gold/cluster_weeks.

        Return how many rows of gold/evidence changed.
        """
        closed = {(row["cluster_id"], row["week"]): row for row in changed if row["closed"]}
        if not closed:
            return 0
        values = [tuple(row[name] for name in _DECIDED_COLUMNS) for row in closed.values()]
        decided = weeks.frame.join(create_dataframe(weeks.spark, values, DECIDED_DDL), ["cluster_id", "week"])
        records = self._lake.read(PROBE_MINUTES).where(F.col("day").isin(weeks.days))
        keys = materialize(find_deciding_brokers(weeks.counted_minutes, weeks.client_broker_minutes, decided))
        stored = self._lake.read(EVIDENCE).join(
            F.broadcast(decided.select("cluster_id", "week")), ["cluster_id", "week"], "left_semi"
        )
        kept_from = self._lake.kept_from(PROBE_MINUTES)
        if kept_from is not None:
            # Evidence whose records have expired cannot be computed again; it stays as it is.
            stored = stored.where(F.col("minute") >= F.lit(kept_from))
        return self._lake.replace_rows(EVIDENCE, collect_samples(records, keys, self._agent_late_us), stored)


_DECIDED_COLUMNS = ("cluster_id", "week", "latency_p99_us", "latency_p99_censored_us", "availability_p99")
