"""Store health events from their Kafka topic in ops/health_events."""

import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from fleetgauge_core.contract import HEADER_BYTES, HEALTH_EVENT, MAX_RECORD_BYTES
from fleetgauge_core.tables import HEALTH_EVENTS
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.io.small_frames import to_utc


def store_health_events(lake: Lake, rows: DataFrame) -> int:
    """Add the events that the table does not have yet, and return how many were added.

    ``rows`` has the columns of Spark's Kafka source; records that are no health events are ignored.
    """
    header = F.substring("value", 1, HEADER_BYTES) == F.lit(bytearray(HEALTH_EVENT.header))
    body = F.substring(F.col("value"), HEADER_BYTES + 1, MAX_RECORD_BYTES)
    decoded = (
        rows.where(header)
        .select(from_avro(body, HEALTH_EVENT.text, {"mode": "PERMISSIVE"}).alias("event"))
        .select("event.*")
        .where("event_id IS NOT NULL")
    )
    events = {row["event_id"]: row.asDict() | {"at": to_utc(row["at"])} for row in decoded.collect()}
    if not events:
        return 0
    table = lake.table_store(HEALTH_EVENTS)
    stored = table.rows(pc.field("event_id").isin(list(events)))
    return table.replace(events.values(), stored, {"event_id": list(events)})
