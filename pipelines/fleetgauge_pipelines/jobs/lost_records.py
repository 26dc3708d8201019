"""Records that were lost before the stream could read them, in ops/quality.

The offsets tell exactly which records expired. Of a topic that was deleted, they are a lower bound; but every
agent numbers its records, so for an hour the numbers that are missing in bronze are looked up after each
batch, until records that were still on their way have arrived.
"""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pyarrow.compute as pc
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from fleetgauge_core.metadata import describe_change
from fleetgauge_core.slo.utc_days import list_utc_days
from fleetgauge_core.tables import PROBE_MINUTES, QUALITY
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.jobs.stream_topics import StreamChange, describe_spans

SUITE = "topics"

_REFINED_FOR = timedelta(hours=1)
#: Runs are compared over this time before the loss was found: spools may deliver hours later.
_LOOK_BACK = timedelta(hours=2)
#: Records of a run's newest minutes may still be on their way.
_SETTLED_AFTER = timedelta(minutes=2)

#: Ranges of numbers that are listed in full; a page shows them.
_MAX_LISTED = 50


class LostRecords:
    """Stores what a stream lost; ``minutes_topic`` is the topic whose records are numbered."""

    def __init__(self, lake: Lake, minutes_topic: str) -> None:
        self._lake = lake
        self._expectation = _expectation(minutes_topic)
        self._recent: dict[str, dict[str, Any]] = {}

    def open(self, now: datetime) -> None:
        """Read the losses of the last hour, which are still looked up."""
        recent = (pc.field("suite") == SUITE) & (pc.field("at") > now - _REFINED_FOR)
        rows = self._lake.table_store(QUALITY).rows(recent)
        self._recent = {row["check_id"]: row for row in rows if row["expectation"] == self._expectation}

    def store(self, changes: Sequence[StreamChange], now: datetime) -> None:
        """Add a failed check for each change, unless it was stored before: a batch may be repeated."""
        if not changes:
            return
        rows = {row["check_id"]: row for row in (_build_row(change, now) for change in changes)}
        quality = self._lake.table_store(QUALITY)
        for stored in quality.rows(pc.field("check_id").isin(list(rows)), ["check_id"]):
            del rows[stored["check_id"]]
        if rows:
            quality.append(list(rows.values()))
        self._recent |= {
            check_id: row for check_id, row in rows.items() if row["expectation"] == self._expectation
        }

    def refine(self, now: datetime) -> None:
        """Add to the losses of the last hour which numbered records are missing."""
        self._recent = {
            check_id: row for check_id, row in self._recent.items() if row["at"] > now - _REFINED_FOR
        }
        if not self._recent:
            return
        since = min(row["at"] for row in self._recent.values()) - _LOOK_BACK
        days = list_utc_days([(since, now)])
        bronze = self._lake.read(PROBE_MINUTES).where(F.col("day").isin(days) & (F.col("minute") >= since))
        missing = find_missing_sequences(bronze)
        gaps = [(run, first, last) for run, spans in missing.items() for first, last in spans]
        count = sum(last - first + 1 for _, first, last in gaps)
        numbers: dict[str, list[str]] = {}
        for run, first, last in gaps[:_MAX_LISTED]:
            numbers.setdefault(run, []).append(f"{first}-{last}")
        for row in self._recent.values():
            observed = json.loads(row["observed"]) | {"sequences": numbers, "sequences_missing": count}
            if (text := json.dumps(observed)) != row["observed"]:
                row["observed"] = text
                self._lake.table_store(QUALITY).update(row)


def find_missing_sequences(records: DataFrame) -> dict[str, list[tuple[int, int]]]:
    """Return the first and last number of each gap in the numbers of a run's records.

    Gaps before a record of the run's newest minutes are not among them.
    """
    run = Window.partitionBy("run_id")
    gaps = (
        records.select(
            "run_id",
            "sequence",
            "minute",
            F.lag("sequence").over(run.orderBy("sequence")).alias("before"),
            F.max("minute").over(run).alias("newest"),
        )
        .where(F.col("sequence") > F.col("before") + 1)
        .where(F.col("minute") <= F.col("newest") - F.expr(f"INTERVAL {_SETTLED_AFTER.seconds} SECONDS"))
    )
    missing: dict[str, list[tuple[int, int]]] = {}
    for row in sorted(gaps.collect(), key=lambda row: (row["run_id"], row["sequence"])):
        missing.setdefault(row["run_id"], []).append((row["before"] + 1, row["sequence"] - 1))
    return missing


def _expectation(topic: str) -> str:
    return f"every_record_is_read({topic})"


def _build_row(stream_change: StreamChange, now: datetime) -> dict[str, Any]:
    label, topic, change = stream_change
    observed = {
        "text": f"topic {topic} {describe_change(change)}",
        "change": change.kind,
        "records": change.lost_records,
        "exact": change.is_exact,
        "offsets": describe_spans(change.lost),
        "topic_id": change.topic_id,
    }
    return {
        "check_id": f"{label}/{SUITE}/{topic}/{change.kind}",
        "at": now,
        "batch": f"{label}/{SUITE}",
        "suite": SUITE,
        "expectation": _expectation(topic),
        "success": False,
        "observed": json.dumps(observed),
        "week": None,
    }
