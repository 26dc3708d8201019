"""Compute broker-minutes from bronze: one row for each expected broker, leg and minute.

The samples of all vantages whose schedule lag is within limits are pooled.
"""

from collections.abc import Collection
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from fleetgauge_core.slo.levels import CENSORED_LATENCY_US, MIN_MEASURED_ATTEMPTS
from fleetgauge_pipelines.transforms.quantile import censored_quantile, quantile, sort_ascending

BROKER_MINUTE_KEY = ["cluster_id", "broker_id", "leg", "minute"]

#: A row for each cluster: the density_columns of its minutes, and its retired brokers.
DENSITY_DDL = "cluster_id string, shared boolean, reach int, retired array<int>"

#: Counts of several records may add up to more than the table's int columns hold.
_INT_MAX = 2**31 - 1

_SUMS = ("attempted", "acknowledged", "received", "lost", "duplicated")


def density_columns() -> tuple[Column, Column]:
    """Return the aggregates (shared, reach) of compute_expected_brokers, which limit what Spark shuffles.

    ``shared`` is true if some broker-minute has several records, which then have to be pooled. ``reach`` is
    the largest number of a broker's slowest samples that the pooled p99 of a minute may need.
    """
    at_most = F.coalesce(F.max("attempted"), F.lit(0))
    return (
        F.coalesce(F.bool_or("shared"), F.lit(False)).alias("shared"),
        F.least(F.call_function("div", at_most, F.lit(100)) + 1, F.lit(_INT_MAX)).cast("int").alias("reach"),
    )


def compute_broker_minutes(
    records: DataFrame, expected: DataFrame, density: DataFrame, shared: Collection[bool], agent_late_us: int
) -> DataFrame:
    """Return silver/broker_minutes without ``failures`` and with two further columns.

    ``codes`` are the failures that add_failures counts later, because the lambdas that it needs keep Spark
    from generating code for the expressions beside them. ``slowest`` are the ascending samples that the
    cluster's pooled p99 may need.

    ``expected`` is compute_expected_brokers of these records, ``density`` has the columns of DENSITY_DDL, and
    ``shared`` the distinct values of its column of that name. Where no broker-minute is shared, its levels
    are computed in the partition that reads its record, without a shuffle.
    """
    on_time = is_on_time(agent_late_us)
    not_retired = ~F.array_contains("retired", F.col("broker_id"))
    active = records.join(F.broadcast(density), "cluster_id").where(not_retired)
    pools = [
        (pool_vantages if is_shared else _pool_single)(active.where(F.col("shared") == is_shared), on_time)
        for is_shared in sorted(shared) or [False]
    ]
    silent = expected.select("cluster_id", "minute", F.explode("silent").alias("silent"))
    unmeasured = silent.select("cluster_id", "silent.broker_id", "silent.leg", "minute")
    levels = _compute_levels(reduce(DataFrame.unionByName, pools))
    return _fill_unmeasured(levels.unionByName(unmeasured, allowMissingColumns=True))


def is_on_time(agent_late_us: int) -> Column:
    """Return whether a record's p95 schedule lag is within the limit, so that it may be pooled."""
    return F.col("schedule_lag_p95_us") <= agent_late_us


def _latency() -> Column:
    return F.when(F.col("leg") == "client", F.col("e2e_us")).otherwise(F.col("ack_us"))


def _client_acks() -> Column:
    # NULL on the leader leg, whose latencies are its acknowledgements.
    return F.when(F.col("leg") == "client", F.col("ack_us"))


def _codes() -> Column:
    """Return the failures of both kinds as [(code, count), ...]; NULL without a failure."""
    codes = F.concat(F.map_entries("produce_failures"), F.map_entries("consume_failures"))
    return F.when((F.size("produce_failures") > 0) | (F.size("consume_failures") > 0), codes)


def _pool_single(records: DataFrame, on_time: Column) -> DataFrame:
    """Return what pool_vantages returns, for records of which each is the only one of its key."""
    return records.select(
        *BROKER_MINUTE_KEY,
        "reach",
        *(F.when(on_time, F.col(name)).cast("long").alias(name) for name in _SUMS),
        F.when(on_time, _latency()).alias("latencies"),
        F.when(on_time, _client_acks()).alias("acks"),
        F.when(on_time, _codes()).alias("codes"),
        on_time.cast("int").alias("vantages"),
        (~on_time).alias("agent_late"),
        F.sort_array(F.array_distinct("led_by")).alias("led_by"),
    )


def pool_vantages(records: DataFrame, on_time: Column) -> DataFrame:
    """Pool the records of each broker, leg and minute; counts and samples are of on-time vantages only."""
    return records.groupBy(*BROKER_MINUTE_KEY).agg(
        F.max("reach").alias("reach"),
        *(F.sum(F.when(on_time, F.col(name))).cast("long").alias(name) for name in _SUMS),
        _pooled(F.when(on_time, _latency())).alias("latencies"),
        _pooled(F.when(on_time, _client_acks())).alias("acks"),
        F.flatten(F.collect_list(F.when(on_time, _codes()))).alias("codes"),
        # count_distinct would make Spark add a second aggregation by vantage.
        F.size(F.collect_set(F.when(on_time, F.col("vantage")))).alias("vantages"),
        F.max(~on_time).alias("agent_late"),
        F.sort_array(F.array_distinct(F.flatten(F.collect_list("led_by")))).alias("led_by"),
    )


def _pooled(samples: Column) -> Column:
    """Return the ascending samples of all vantages; those of a single vantage need no sorting."""
    lists = F.collect_list(samples)
    return F.when(F.size(lists) == 1, F.get(lists, F.lit(0))).otherwise(sort_ascending(F.flatten(lists)))


def _compute_levels(pools: DataFrame) -> DataFrame:
    no_samples = F.array().cast("array<int>")
    counted = pools.select(
        *BROKER_MINUTE_KEY,
        "reach",
        *(F.coalesce(F.col(name), F.lit(0)).cast("long").alias(name) for name in _SUMS),
        F.coalesce("latencies", no_samples).alias("latencies"),
        F.when(F.col("leg") == "leader", F.col("latencies")).otherwise(F.col("acks")).alias("acks"),
        "codes",
        "vantages",
        "agent_late",
        "led_by",
    ).withColumn("measured", F.col("attempted") >= MIN_MEASURED_ATTEMPTS)
    samples, succeeded = F.col("latencies"), F.size("latencies").cast("long")
    slowest = F.when(F.col("leg") == "client", _take_last(samples, F.col("reach")))
    deadline = F.when(F.col("leg") == "client", CENSORED_LATENCY_US["client"]).otherwise(
        CENSORED_LATENCY_US["leader"]
    )

    def if_measured(value: Column) -> Column:
        return F.when(F.col("measured"), value)

    return counted.select(
        *BROKER_MINUTE_KEY,
        *_SUMS,
        succeeded.alias("succeeded"),
        if_measured(succeeded / F.col("attempted")).alias("availability"),
        if_measured(quantile(50, samples)).cast("long").alias("latency_p50_us"),
        if_measured(quantile(99, samples)).cast("long").alias("latency_p99_us"),
        if_measured(censored_quantile(99, samples, F.col("attempted"), deadline))
        .cast("long")
        .alias("latency_p99_censored_us"),
        if_measured(F.get(samples, F.size(samples) - 1)).cast("long").alias("latency_max_us"),
        if_measured(quantile(99, F.col("acks"))).cast("long").alias("ack_p99_us"),
        "codes",
        "vantages",
        "agent_late",
        "measured",
        "led_by",
        if_measured(slowest).alias("slowest"),
    )


def _take_last(values: Column, limit: Column) -> Column:
    return F.slice(values, F.greatest(F.size(values) - limit, F.lit(0)) + 1, limit)


def _fill_unmeasured(rows: DataFrame) -> DataFrame:
    """Fill the columns of expected rows without a record: counts are 0 and nothing is measured."""
    counts = {name: F.coalesce(F.col(name), F.lit(0).cast("long")) for name in (*_SUMS, "succeeded")}
    return rows.withColumns(
        {
            **counts,
            "vantages": F.coalesce("vantages", F.lit(0)),
            "agent_late": F.coalesce("agent_late", F.lit(False)),
            "measured": F.coalesce("measured", F.lit(False)),
            "led_by": F.coalesce("led_by", F.array().cast("array<int>")),
            "day": F.to_date("minute"),
        }
    )


def add_failures(rows: DataFrame) -> DataFrame:
    """Replace ``codes`` by the table's column ``failures``."""
    no_failures = F.create_map().cast("map<string,int>")
    counted = F.when(F.size("codes") > 0, sum_by_code(F.col("codes")))
    return rows.withColumn("failures", F.coalesce(counted, no_failures)).drop("codes")


def sum_by_code(entries: Column) -> Column:
    """Return {code: sum} of entries [(code, count), ...]; codes are sorted, so equal maps compare equal."""
    codes = F.sort_array(F.array_distinct(F.transform(entries, lambda entry: entry["key"])))

    def sum_counts(code: Column) -> Column:
        of_code = F.filter(entries, lambda entry: entry["key"] == code)
        total = F.aggregate(of_code, F.lit(0).cast("long"), lambda total, entry: total + entry["value"])
        return F.least(total, F.lit(_INT_MAX)).cast("int")

    return F.map_from_entries(
        F.transform(codes, lambda code: F.struct(code.alias("key"), sum_counts(code).alias("value")))
    )
