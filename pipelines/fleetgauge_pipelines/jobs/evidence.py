"""What decided a closed week, kept for ever: its samples outlive bronze."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import functions as F

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.tables import EVIDENCE, PROBE_MINUTES
from fleetgauge_pipelines.io.lake import Lake, settle
from fleetgauge_pipelines.io.small_frames import dataframe
from fleetgauge_pipelines.jobs.weeks import CountedWeeks
from fleetgauge_pipelines.transforms.evidence import DECIDED_DDL, deciding, samples

Row = Mapping[str, Any]


class Evidence:
    """Writes gold/evidence."""

    def __init__(self, lake: Lake, fleet: Fleet) -> None:
        self._lake = lake
        self._agent_late_us = round(fleet.agent_late_ms * 1000)

    def bring_up(self, weeks: CountedWeeks, changed: Sequence[Row]) -> int:
        """Keep what decided the changed weeks that are closed; returns how many rows that changed."""
        decided = {(row["cluster_id"], row["week"]): row for row in changed if row["closed"]}
        if not decided:
            return 0
        values = [tuple(row[name] for name in _DECIDED) for row in decided.values()]
        bounded = weeks.frame.join(dataframe(weeks.spark, values, DECIDED_DDL), ["cluster_id", "week"])
        records = self._lake.read(PROBE_MINUTES).where(F.col("day").isin(weeks.days))
        keys = settle(deciding(weeks.counted, weeks.client, bounded))
        stored = self._lake.read(EVIDENCE).join(
            F.broadcast(bounded.select("cluster_id", "week")), ["cluster_id", "week"], "left_semi"
        )
        kept_from = self._lake.kept_from(PROBE_MINUTES)
        if kept_from is not None:
            # What bronze no longer holds stays as it was kept.
            stored = stored.where(F.col("minute") >= F.lit(kept_from))
        return self._lake.bring_to(EVIDENCE, samples(records, keys, self._agent_late_us), stored)


_DECIDED = ("cluster_id", "week", "latency_p99_us", "latency_p99_censored_us", "availability_p99")
