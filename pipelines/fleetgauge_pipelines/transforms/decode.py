"""Decode raw bytes to probe records and check them by the contract.

Input columns: ``value`` binary, ``source`` string. Output: the same, ``record`` (the decoded struct),
``reason`` and ``detail``. A record that breaks the contract keeps its bytes and gets a reason and a detail,
both NULL for a valid record.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro, to_avro

from fleetgauge_core.contract import HEADER_BYTES, MAX_RECORD_BYTES, PROBE_MINUTE
from fleetgauge_core.contract.bounds import (
    ACK_DEADLINE_US,
    MAX_ATTEMPTED,
    MAX_BROKERS,
    MAX_FAILURE_CODES,
    MAX_REPEATED,
    MAX_TEXT_LENGTH,
    RECEIVE_DEADLINE_US,
)
from fleetgauge_core.contract.single_object import SINGLE_OBJECT_MARKER

#: How far an agent's clock may be ahead of the pipeline's.
FUTURE_TOLERANCE = timedelta(minutes=5)

#: A column that says which values of a record are beyond their bounds; empty if none is.
_IMPLAUSIBLE = "values_beyond_bounds"

_REQUIRED_TEXT = ("agent_id", "run_id", "vantage", "cluster_id")
_TEXTS = (*_REQUIRED_TEXT, "agent_version", "kafka_cluster_uuid", "rack", "leg")
_CODES = ("produce_failures", "consume_failures")
_FIRST_TIME = datetime(1, 1, 2, tzinfo=UTC)
_LAST_TIME = datetime(9999, 12, 30, tzinfo=UTC)
_COUNTS = ("attempted", "acknowledged", "received", "lost", "duplicated", "out_of_order", "sequence")


def decode_records(raw: DataFrame) -> DataFrame:
    """Remove the single-object header, choose the schema by its fingerprint, and decode the body."""
    size = F.length("value")
    framing = (
        F.when(F.col("value").isNull(), "not_decodable")
        .when(size > MAX_RECORD_BYTES, "oversize")
        .when(
            (size < HEADER_BYTES) | (F.substring("value", 1, 2) != F.lit(bytearray(SINGLE_OBJECT_MARKER))),
            "not_decodable",
        )
        .when(F.substring("value", 3, 8) != F.lit(bytearray(PROBE_MINUTE.fingerprint)), "unknown_fingerprint")
    )
    framed = raw.withColumn("reason", framing).withColumn(
        "body",
        F.when(F.col("reason").isNull(), F.substring(F.col("value"), HEADER_BYTES + 1, MAX_RECORD_BYTES)),
    )
    decoded = framed.withColumn("record", from_avro(F.col("body"), PROBE_MINUTE.text, {"mode": "PERMISSIVE"}))
    # from_avro returns a struct of NULLs for bytes that cannot be decoded. It ignores bytes after the record;
    # the length of the record when encoded again reveals them.
    encoded_length = F.length(to_avro(F.col("record"), PROBE_MINUTE.text))
    content = F.when(F.col("record.run_id").isNull() | _unreadable(F.col("record")), "not_decodable").when(
        encoded_length != F.length("body"), "trailing_bytes"
    )
    return (
        decoded.withColumn("reason", F.coalesce("reason", content))
        .withColumn("detail", F.concat(size.cast("string"), F.lit(" bytes")))
        .withColumn("record", F.when(F.col("reason").isNull(), F.col("record")))
        .drop("body")
    )


def _unreadable(record: Column) -> Column:
    # Avro's decoder accepts text that is not UTF-8, and times outside of the years 1 to 9999 of Python.
    texts = [record[name] for name in _TEXTS] + [F.concat_ws("", F.map_keys(record[name])) for name in _CODES]
    times = [record[name] for name in ("minute", "emitted_at")]
    return _any(
        [
            *(~F.is_valid_utf8(text) for text in texts),
            *((time < F.lit(_FIRST_TIME)) | (time > F.lit(_LAST_TIME)) for time in times),
        ]
    )


def check_contract(
    decoded: DataFrame,
    known_clusters: Iterable[str],
    clock: datetime,
    oldest: datetime | None,
    kept_from: datetime | None,
    accepts_unlikely: bool = False,
) -> DataFrame:
    """Apply the rules of the contract to decoded records; the first broken rule gives the reason.

    ``oldest`` is the first minute that the caller accepts, ``kept_from`` the first that has not expired from
    bronze; None for no limit. ``accepts_unlikely``: a person has accepted values beyond their bounds.
    """
    implausible = F.lit("") if accepts_unlikely else _describe_implausible("record")
    decoded = decoded.withColumn(_IMPLAUSIBLE, implausible)
    rules = build_contract_rules(F.col("record"), known_clusters, clock, oldest, kept_from)
    reason, detail = F.lit(None).cast("string"), F.lit(None).cast("string")
    for name, broken, explanation in reversed(rules):
        reason = F.when(broken, F.lit(name)).otherwise(reason)
        detail = F.when(broken, explanation).otherwise(detail)
    is_decoded = F.col("reason").isNull()
    return (
        decoded.withColumn("detail", F.when(is_decoded, detail).otherwise(F.col("detail")))
        .withColumn("reason", F.when(is_decoded, reason).otherwise(F.col("reason")))
        .drop(_IMPLAUSIBLE)
    )


def build_contract_rules(
    record: Column,
    known_clusters: Iterable[str],
    clock: datetime,
    oldest: datetime | None,
    kept_from: datetime | None,
) -> list[tuple[str, Column, Column]]:
    """Return the rules as (reason, whether the record breaks it, detail), in order of precedence."""
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
            _any(F.array_min(array) < 0 for array in arrays),
            F.lit("ack_us or e2e_us holds a negative value"),
        ),
        (
            "unsorted_latencies",
            _any(F.sort_array(array) != array for array in arrays),
            F.lit("ack_us or e2e_us does not ascend"),
        ),
        ("counts_do_not_add_up", _counts_broken(record), sizes),
        ("implausible", F.col(_IMPLAUSIBLE) != "", F.col(_IMPLAUSIBLE)),
    ]


def _describe_implausible(record: str) -> Column:
    """Return which values of a column of records are beyond their bounds, in words; empty if none is.

    It is one expression in SQL, because a batch would spend time on building it from columns.
    """
    outside = [
        *(
            _describe_outside(name, f"{value} < 0", value, "at least 0")
            for name, value in _list_counts(record)
        ),
        *(
            _describe_outside(name, f"{value} > {bound}", value, f"at most {bound}")
            for name, value, bound in _list_bounded_values(record)
        ),
    ]
    return F.expr(f"concat_ws('; ', {', '.join(outside)})")


def _describe_outside(name: str, condition: str, value: str, bound: str) -> str:
    return f"if({condition}, concat('{name}: ', {value}, ', {bound}'), null)"


def _list_counts(record: str) -> Iterator[tuple[str, str]]:
    """Yield the values that cannot be negative, beside those that have to add up."""
    for name in ("broker_id", "schedule_lag_p95_us", "schedule_lag_max_us"):
        yield name, f"{record}.{name}"
    for name in ("expected_brokers", "led_by"):
        yield f"lowest of {name}", f"array_min({record}.{name})"
    for name in _CODES:
        yield f"lowest count of {name}", f"array_min(map_values({record}.{name}))"


def _list_bounded_values(record: str) -> Iterator[tuple[str, str, int]]:
    """Yield the values that have an upper bound: what each is, its expression, and the bound."""
    yield "attempted", f"{record}.attempted", MAX_ATTEMPTED
    # Latencies ascend, as an earlier rule has checked.
    for name, bound in (("ack_us", ACK_DEADLINE_US), ("e2e_us", RECEIVE_DEADLINE_US)):
        yield f"highest of {name}", f"try_element_at({record}.{name}, -1)", bound
    for name in ("duplicated", "out_of_order"):
        yield name, f"{record}.{name}", MAX_REPEATED
    for name in _CODES:
        codes = f"map_keys({record}.{name})"
        yield f"codes in {name}", f"size({codes})", MAX_FAILURE_CODES
        yield (
            f"length of a code in {name}",
            f"array_max(transform({codes}, code -> length(code)))",
            MAX_TEXT_LENGTH,
        )
        yield f"highest count of {name}", f"array_max(map_values({record}.{name}))", MAX_ATTEMPTED
    for name in ("expected_brokers", "led_by"):
        yield f"number of {name}", f"size({record}.{name})", MAX_BROKERS
    for name in _TEXTS:
        yield f"length of {name}", f"length({record}.{name})", MAX_TEXT_LENGTH


def _counts_broken(record: Column) -> Column:
    succeeded = F.size(record["e2e_us"])
    leader_leg = record["leg"] == "leader"
    return _any(
        [
            *(record[name] < 0 for name in _COUNTS),
            record["acknowledged"] != F.size(record["ack_us"]),
            *(record[name] > record["attempted"] for name in ("acknowledged", "received", "lost")),
            succeeded > F.least(record["acknowledged"], record["received"]),
            leader_leg & ((succeeded > 0) | (record["received"] != 0)),
        ]
    )


def _any(conditions: Iterable[Column]) -> Column:
    # A NULL, such as the minimum of an empty array, counts as false.
    any_holds = F.lit(False)
    for condition in conditions:
        any_holds = any_holds | F.coalesce(condition, F.lit(False))
    return any_holds
