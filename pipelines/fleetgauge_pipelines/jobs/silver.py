"""Bronze to broker-minutes and cluster-minutes."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fleetgauge_core.detection.goals import latency_objective_us
from fleetgauge_core.fleet import Fleet
from fleetgauge_core.slo.days import days_of
from fleetgauge_core.slo.minute_range import Stretch, pieces
from fleetgauge_core.tables import (
    BROKER_MINUTES,
    CLUSTER_MINUTES,
    PROBE_MINUTES,
    Table,
)
from fleetgauge_pipelines.io.lake import Lake, settle
from fleetgauge_pipelines.io.small_frames import dataframe
from fleetgauge_pipelines.jobs.annotations import Said
from fleetgauge_pipelines.jobs.silver_bounds import (
    Horizons,
    Seen,
    expected_at_end,
    last_expected,
    seen_in,
)
from fleetgauge_pipelines.quality.silver_facts import Facts, silver_facts, together
from fleetgauge_pipelines.transforms.broker_minutes import (
    DENSITY_DDL,
    broker_minutes,
    density,
    with_failures,
)
from fleetgauge_pipelines.transforms.causes import REASONS_DDL, causes_again
from fleetgauge_pipelines.transforms.cluster_minutes import cluster_minutes
from fleetgauge_pipelines.transforms.expected_brokers import RANGES_DDL, expected_brokers, in_ranges

#: Silver is made a week at a time, so that a gap of months does not have to fit into memory.
_PIECE = timedelta(days=7)
_MINUTE = timedelta(minutes=1)


class Silver:
    """Brings silver to what bronze says."""

    def __init__(self, spark: SparkSession, lake: Lake, fleet: Fleet, horizons: Horizons) -> None:
        self._spark = spark
        self._lake = lake
        self._fleet = fleet
        self._clusters = {cluster.id: cluster for cluster in fleet.clusters}
        self._horizons = horizons
        #: As many as a shuffle would leave; bronze may be read in hundreds of parts.
        self._files_a_day = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)

    def bring_up(
        self, stretches: Sequence[Stretch], touched: Mapping[str, tuple[datetime, datetime]], said: Said
    ) -> tuple[int, Facts]:
        """Bring both silver tables up to bronze; returns changed rows and aggregates for the gate."""
        changed, facts = 0, []
        for piece, ranges, brokers, seen in self._broker_minutes(stretches):
            begins = self._horizons.begins(seen, piece)
            counted = self._from_begin(brokers, begins, piece)
            facts.append(silver_facts(counted))
            minutes = settle(cluster_minutes(counted, self._reasons(piece, said)))
            is_new = self._horizons.is_new(piece)
            self._horizons.will_write(piece)
            for table, wanted in ((BROKER_MINUTES, counted), (CLUSTER_MINUTES, minutes)):
                if is_new:
                    changed += self._lake.add(table, wanted.coalesce(self._files_a_day))
                else:
                    stored = in_ranges(self._on_days_of(table, piece), ranges)
                    changed += self._lake.bring_to(table, wanted, stored)
            self._horizons.extend(piece, begins, touched, seen)
        return changed, together(facts)

    def find_causes(self, stretches: Sequence[Stretch], said: Said) -> int:
        """Find the causes of stored minutes anew: what explains them has changed; returns changed rows."""
        changed = 0
        for piece in pieces(stretches, _PIECE):
            reasons, ranges = self._reasons(piece, said), self._ranges(piece, {})
            minutes, brokers = (
                in_ranges(self._on_days_of(table, piece), ranges)
                for table in (CLUSTER_MINUTES, BROKER_MINUTES)
            )
            stored = minutes.where("latency_p99_censored_us IS NOT NULL")
            changed += self._lake.bring_to(CLUSTER_MINUTES, causes_again(stored, brokers, reasons), stored)
        return changed

    def _reasons(self, piece: Sequence[Stretch], said: Said) -> DataFrame:
        """A row for each cluster of the piece, whether anything is said of it or not."""
        found = said.reasons(min(one.lo for one in piece), max(one.hi for one in piece) + _MINUTE)
        rows = [
            (
                cluster_id,
                latency_objective_us(self._fleet, self._clusters[cluster_id]),
                [(one.starts, one.ends, one.home, one.rank) for one in found.get(cluster_id, ())],
            )
            for cluster_id in sorted({one.cluster_id for one in piece})
        ]
        return dataframe(self._spark, rows, REASONS_DDL)

    def _broker_minutes(
        self, stretches: Sequence[Stretch]
    ) -> Iterator[tuple[list[Stretch], DataFrame, DataFrame, dict[str, Seen]]]:
        """The stretches piece by piece: with its ranges, what bronze says of them, and a look at that."""
        late_us = round(self._fleet.agent_late_ms * 1000)
        carried = self._horizons.carried(stretches)
        for piece in pieces(stretches, _PIECE):
            ranges = self._ranges(piece, carried)
            records = in_ranges(self._on_days_of(PROBE_MINUTES, piece), ranges)
            expected = settle(expected_brokers(records, ranges))
            found = expected.groupBy("cluster_id").agg(*density(), *last_expected()).collect()
            dense = [
                (row["cluster_id"], row["shared"], row["reach"], self._clusters[row["cluster_id"]].retired)
                for row in found
            ]
            uncounted = settle(
                broker_minutes(
                    records,
                    expected,
                    dataframe(self._spark, dense, DENSITY_DDL),
                    {row["shared"] for row in found},
                    late_us,
                )
            )
            brokers = with_failures(uncounted)
            seen = seen_in(found, brokers)
            carried |= {one.cluster_id: expected_at_end(one, seen) for one in piece}
            yield piece, ranges, brokers, seen

    def _ranges(self, piece: Sequence[Stretch], carried: Mapping[str, tuple[int, ...] | None]) -> DataFrame:
        rows = [
            (
                one.cluster_id,
                one.lo,
                one.hi,
                carried.get(one.cluster_id),
                list(self._clusters[one.cluster_id].retired),
            )
            for one in piece
        ]
        return dataframe(self._spark, rows, RANGES_DDL)

    def _on_days_of(self, table: Table, piece: Sequence[Stretch]) -> DataFrame:
        """Rows of the piece's days and, so that files of other hours are not even opened, of its span."""
        within = F.col("minute").between(min(one.lo for one in piece), max(one.hi for one in piece))
        days = days_of((one.lo, one.hi) for one in piece)
        return self._lake.read(table).where(F.col("day").isin(days) & within)

    def _from_begin(
        self, brokers: DataFrame, begins: Mapping[str, datetime], piece: Sequence[Stretch]
    ) -> DataFrame:
        """Without the minutes that do not count yet; mostly there are none."""
        if all(one.cluster_id in begins and begins[one.cluster_id] <= one.lo for one in piece):
            return brokers
        rows = dataframe(self._spark, list(begins.items()), "cluster_id string, begin timestamp")
        return brokers.join(F.broadcast(rows), "cluster_id").where("minute >= begin").drop("begin")
