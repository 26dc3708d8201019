"""What records say about their cluster, compared with what its other records say.

Every record names the brokers of its cluster and the ID that Kafka gave to it. An agent sends two records a
minute for each broker, which all say the same: what one of them says alone was damaged, or it is about
another cluster. Brokers may join at any time, so a few that nobody else names are believed.

``checked`` has the columns source, value, record and reason, as check_contract returns them.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from fleetgauge_core.contract.bounds import MAX_UNCONFIRMED_BROKERS

#: The Kafka cluster IDs that are known for a cluster, from its first to its last record, and until when no
#: other one is believed.
KAFKA_IDS_DDL = "cluster_id string, kafka_id string, first timestamp, last timestamp, until timestamp"


def summarize_records(checked: DataFrame) -> DataFrame:
    """Return a row for each cluster and Kafka cluster ID that valid records name, and one for all others.

    The columns are cluster_id and kafka_id, NULL for the records with a reason; ``records`` (their number),
    ``first`` and ``last`` (minutes), and ``brokers``, which they name.
    """
    valid = checked.select(F.when(F.col("reason").isNull(), F.col("record")).alias("record")).select(
        "record.*"
    )
    return valid.groupBy("cluster_id", F.col("kafka_cluster_uuid").alias("kafka_id")).agg(
        *list_summary_columns()
    )


def list_summary_columns() -> tuple[Column, ...]:
    """Return the aggregates of summarize_records."""
    registered = F.array_distinct(F.flatten(F.collect_set("expected_brokers")))
    return (
        F.count(F.lit(1)).alias("records"),
        F.min("minute").alias("first"),
        F.max("minute").alias("last"),
        F.array_union(registered, F.collect_set("broker_id")).alias("brokers"),
    )


def refuse_other_kafka_ids(checked: DataFrame, kafka_ids: DataFrame) -> DataFrame:
    """Return the records with a reason where another Kafka cluster ID is known for their cluster and minute.

    ``kafka_ids``: KAFKA_IDS_DDL. A record whose own ID is known for its minute is not refused.
    """
    named, minute = F.col("record.kafka_cluster_uuid"), F.col("record.minute")
    at_that_time = (F.col("record.cluster_id") == kafka_ids["cluster_id"]) & minute.between(
        kafka_ids["first"], kafka_ids["until"]
    )
    is_own = F.col("kafka_id") == named
    refused = (
        checked.where("reason IS NULL")
        .join(F.broadcast(kafka_ids), at_that_time)
        .where(named != "")
        .groupBy("source", "value")
        .agg(
            F.min(F.when(~is_own, F.col("kafka_id"))).alias("expected_id"),
            F.max(is_own & (minute <= F.col("last"))).alias("is_expected"),
        )
        .where("expected_id IS NOT NULL AND NOT is_expected")
        .drop("is_expected")
    )
    detail = F.format_string(
        "kafka_cluster_uuid is %s, that of %s is %s",
        named,
        F.col("record.cluster_id"),
        F.col("expected_id"),
    )
    return _refuse(checked, refused, "other_kafka_cluster", detail)


def refuse_unconfirmed_brokers(checked: DataFrame, stored: DataFrame) -> DataFrame:
    """Return the records with a reason where they name many brokers that no other record names.

    ``stored`` are bronze's records of the same clusters and about the same time.
    """
    valid = checked.where("reason IS NULL")
    named_brokers = valid.select("source", "value", *_list_named("record."))
    stored_brokers = stored.select(*_list_named(""))
    of_records = named_brokers.select(*stored_brokers.columns).union(stored_brokers)
    records = F.count_distinct("run_id", "sequence").alias("records")
    lone = of_records.groupBy("cluster_id", "broker").agg(records).where("records = 1").drop("records")
    # Nobody contradicts the only record of a cluster.
    alone = of_records.groupBy("cluster_id").agg(records).where("records = 1").select("cluster_id")
    refused = (
        named_brokers.join(lone, ["cluster_id", "broker"])
        .join(alone, "cluster_id", "left_anti")
        .groupBy("source", "value")
        .agg(F.count(F.lit(1)).alias("unconfirmed"))
        .where(F.col("unconfirmed") > MAX_UNCONFIRMED_BROKERS)
    )
    detail = F.format_string(
        f"names %d brokers that no other record names, at most {MAX_UNCONFIRMED_BROKERS}",
        F.col("unconfirmed"),
    )
    return _refuse(checked, refused, "unconfirmed_brokers", detail)


def _list_named(prefix: str) -> list[Column]:
    """Return the identity of a record, and a row for each broker that it names."""
    named = F.array_distinct(
        F.concat(F.col(f"{prefix}expected_brokers"), F.array(F.col(f"{prefix}broker_id")))
    )
    identity = [F.col(f"{prefix}{name}").alias(name) for name in ("cluster_id", "run_id", "sequence")]
    return [*identity, F.explode(named).alias("broker")]


def _refuse(checked: DataFrame, refused: DataFrame, reason: str, detail: Column) -> DataFrame:
    # Files of the same name in two folders have the same source; only the value distinguishes their records.
    others = [name for name in refused.columns if name not in ("source", "value")]
    joined = checked.join(refused, ["source", "value"], "left")
    is_refused = F.col("reason").isNull() & F.col(others[0]).isNotNull()
    return joined.withColumns(
        {
            "detail": F.when(is_refused, detail).otherwise(F.col("detail")),
            "reason": F.when(is_refused, F.lit(reason)).otherwise(F.col("reason")),
        }
    ).select(*checked.columns)
