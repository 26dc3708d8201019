"""Raw bytes to probe records, by the contract; what breaks it keeps its bytes and gets a reason.

In: ``value`` binary, ``source`` string. Out: the same, ``record`` (the decoded
struct), ``reason`` and ``detail`` (NULL for a good record).
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro, to_avro

from fleetgauge_core.contract import HEADER_BYTES, MAX_RECORD_BYTES, PROBE_MINUTE
from fleetgauge_core.contract.single_object import MARKER

#: Clocks of agents may be ahead by as much.
FUTURE_TOLERANCE = timedelta(minutes=5)

_REQUIRED_TEXT = ("agent_id", "run_id", "vantage", "cluster_id")
_TEXTS = (*_REQUIRED_TEXT, "agent_version", "kafka_cluster_uuid", "rack", "leg")
_CODES = ("produce_failures", "consume_failures")
_FIRST_TIME = datetime(1, 1, 2, tzinfo=UTC)
_LAST_TIME = datetime(9999, 12, 30, tzinfo=UTC)
_COUNTS = ("attempted", "acknowledged", "received", "lost", "duplicated", "out_of_order", "sequence")


def decode(raw: DataFrame) -> DataFrame:
    """Cut the header, choose the schema by its fingerprint, decode the body."""
    size = F.length("value")
    framing = (
        F.when(F.col("value").isNull(), "not_decodable")
        .when(size > MAX_RECORD_BYTES, "oversize")
        .when(
            (size < HEADER_BYTES) | (F.substring("value", 1, 2) != F.lit(bytearray(MARKER))), "not_decodable"
        )
        .when(F.substring("value", 3, 8) != F.lit(bytearray(PROBE_MINUTE.fingerprint)), "unknown_fingerprint")
    )
    framed = raw.withColumn("reason", framing).withColumn(
        "body",
        F.when(F.col("reason").isNull(), F.substring(F.col("value"), HEADER_BYTES + 1, MAX_RECORD_BYTES)),
    )
    decoded = framed.withColumn("record", from_avro(F.col("body"), PROBE_MINUTE.text, {"mode": "PERMISSIVE"}))
    # What cannot be decoded comes back as a struct of NULLs;
    # what has bytes left over decodes as if nothing were wrong.
    written_again = F.length(to_avro(F.col("record"), PROBE_MINUTE.text))
    content = F.when(F.col("record.run_id").isNull() | _unreadable(F.col("record")), "not_decodable").when(
        written_again != F.length("body"), "trailing_bytes"
    )
    return (
        decoded.withColumn("reason", F.coalesce("reason", content))
        .withColumn("detail", F.concat(size.cast("string"), F.lit(" bytes")))
        .withColumn("record", F.when(F.col("reason").isNull(), F.col("record")))
        .drop("body")
    )


def _unreadable(record: Column) -> Column:
    """What Avro's decoder lets through: text that is not UTF-8, years that Python does not have."""
    texts = [record[name] for name in _TEXTS] + [F.concat_ws("", F.map_keys(record[name])) for name in _CODES]
    times = [record[name] for name in ("minute", "emitted_at")]
    return _any(
        [
            *(~F.is_valid_utf8(text) for text in texts),
            *((time < F.lit(_FIRST_TIME)) | (time > F.lit(_LAST_TIME)) for time in times),
        ]
    )


def check(
    decoded: DataFrame,
    known_clusters: Iterable[str],
    clock: datetime,
    oldest: datetime | None,
    kept_from: datetime | None,
) -> DataFrame:
    """Apply the rules of the contract to what was decoded; the first that is broken names the reason.

    ``oldest`` is what the caller takes, ``kept_from`` what bronze has not lost to expiry.
    """
    rules = contract_rules(F.col("record"), known_clusters, clock, oldest, kept_from)
    reason, detail = F.lit(None).cast("string"), F.lit(None).cast("string")
    for name, broken, explanation in reversed(rules):
        reason = F.when(broken, F.lit(name)).otherwise(reason)
        detail = F.when(broken, explanation).otherwise(detail)
    good = F.col("reason").isNull()
    return decoded.withColumn("detail", F.when(good, detail).otherwise(F.col("detail"))).withColumn(
        "reason", F.when(good, reason).otherwise(F.col("reason"))
    )


def contract_rules(
    record: Column,
    known_clusters: Iterable[str],
    clock: datetime,
    oldest: datetime | None,
    kept_from: datetime | None,
) -> list[tuple[str, Column, Column]]:
    """(reason, broken?, detail) in the order in which they are judged."""
    text = {name: record[name] for name in _REQUIRED_TEXT}
    empty = F.concat_ws(", ", *(F.when(column == "", F.lit(name)) for name, column in text.items()))
    leg_known = record["leg"].isin("client", "leader")
    on_the_minute = record["minute"] == F.date_trunc("minute", record["minute"])
    latest = clock + FUTURE_TOLERANCE
    arrays = (record["ack_us"], record["e2e_us"])
    sizes = F.format_string(
        "attempted %d, acknowledged %d (%d latencies), received %d, succeeded %d",
        record["attempted"],
        record["acknowledged"],
        F.size(record["ack_us"]),
        record["received"],
        F.size(record["e2e_us"]),
    )
    return [
        ("missing_field", empty != "", F.concat(F.lit("empty: "), empty)),
        ("missing_field", ~leg_known, F.concat(F.lit("leg is neither client nor leader: "), record["leg"])),
        ("missing_field", ~on_the_minute, F.lit("minute is not the start of a minute")),
        ("unknown_cluster", ~record["cluster_id"].isin(*known_clusters), record["cluster_id"]),
        ("future", record["minute"] > F.lit(latest), record["minute"].cast("string")),
        ("too_old", record["minute"] < F.lit(oldest), record["minute"].cast("string")),
        ("expired", record["minute"] < F.lit(kept_from), record["minute"].cast("string")),
        (
            "negative_latency",
            _any(F.array_min(a) < 0 for a in arrays),
            F.lit("ack_us or e2e_us holds a negative value"),
        ),
        (
            "unsorted_latencies",
            _any(F.sort_array(a) != a for a in arrays),
            F.lit("ack_us or e2e_us does not ascend"),
        ),
        ("counts_do_not_add_up", _counts_broken(record), sizes),
    ]


def _counts_broken(record: Column) -> Column:
    succeeded = F.size(record["e2e_us"])
    leader_leg = record["leg"] == "leader"
    return _any(
        [
            *(record[name] < 0 for name in _COUNTS),
            record["acknowledged"] != F.size(record["ack_us"]),
            record["acknowledged"] > record["attempted"],
            succeeded > F.least(record["acknowledged"], record["received"]),
            leader_leg & ((succeeded > 0) | (record["received"] != 0)),
        ]
    )


def _any(conditions: Iterable[Column]) -> Column:
    """True where one is; a NULL (the minimum of nothing) is no fault."""
    joined = F.lit(False)
    for condition in conditions:
        joined = joined | F.coalesce(condition, F.lit(False))
    return joined
