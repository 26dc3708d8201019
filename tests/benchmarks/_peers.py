"""Bronze to gold as experts of DuckDB and of Polars would write it: the same rows as the pipeline's.

One vantage, on time, and no corrections, changes or retired brokers: what a script that somebody runs once
a week would compute. A day at a time, so that memory does not grow with the weeks.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa

from fleetgauge_core.slo.levels import (
    CENSORED_LATENCY_US,
    LATENCY_BUDGET_DIVISOR,
    MIN_FLEET_COVERAGE,
    MIN_MEASURED_ATTEMPTS,
)
from fleetgauge_pipelines.transforms.fleet_weeks import METRICS

_KEY = ("cluster_id", "broker_id", "leg", "minute")
_COUNTS = ("attempted", "acknowledged", "received", "lost", "duplicated")
_LEGS = ("client", "leader")


@dataclass(frozen=True, slots=True)
class PeerInput:
    """The files of bronze by day, and what the fleet file says.

    ``spans`` has the columns cluster_id, first and last (minutes) and objective_us; ``weeks`` those of
    WeekDefinition, and ``segments`` cluster_id, segment and segment_value.
    """

    files: Mapping[date, Sequence[str]]
    spans: pa.Table
    weeks: pa.Table
    segments: pa.Table

    @property
    def all_files(self) -> list[str]:
        """The files of all days."""
        return [file for files in self.files.values() for file in files]


def compute_by_duckdb(peer: PeerInput, out: Path) -> None:
    """Write a Parquet file of each silver table and day, and one of each gold table, below ``out``."""
    con = duckdb.connect()
    con.execute("SET TimeZone = 'UTC'")
    for name, table in (("spans", peer.spans), ("weeks", peer.weeks), ("segments", peer.segments)):
        con.register(name, table)
    con.execute("CREATE TEMP TABLE recorded AS " + _RECORDED, {"files": peer.all_files})
    con.execute("CREATE TEMP TABLE tails AS " + _TAILS)
    con.execute("CREATE TEMP TABLE expected AS " + _EXPECTED)
    for day, files in peer.files.items():
        con.execute("CREATE OR REPLACE TEMP TABLE levels AS " + _LEVELS, {"files": list(files), "day": day})
        columns = "SELECT * EXCLUDE (slowest) FROM levels"
        con.execute(f"COPY ({columns}) TO '{_prepare(out, 'broker_minutes', day)}' (FORMAT parquet)")
        con.execute(f"COPY ({_MINUTES}) TO '{_prepare(out, 'cluster_minutes', day)}' (FORMAT parquet)")
    minutes = f"CREATE VIEW minutes AS SELECT * FROM read_parquet('{out}/cluster_minutes/*.parquet')"
    con.execute(minutes)
    con.execute("CREATE TEMP TABLE cluster_weeks AS " + _CLUSTER_WEEKS)
    con.execute(f"COPY cluster_weeks TO '{out}/cluster_weeks.parquet' (FORMAT parquet)")
    con.execute(f"COPY ({_FLEET_WEEKS}) TO '{out}/fleet_weeks.parquet' (FORMAT parquet)")
    con.close()


def _prepare(out: Path, table: str, day: date) -> Path:
    folder = out / table
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{day}.parquet"


def _rank(count: str) -> str:
    """Return the nearest rank of the 99th percentile in SQL, from 1."""
    return f"(({count}) * 99 + 99) // 100"


#: Minutes with a record: the brokers that its records list, and how many records it has.
_RECORDED = """
    SELECT cluster_id, minute, count(*) AS records, sum(attempted) FILTER (leg = 'client') AS attempted,
        list_distinct(flatten(list(DISTINCT expected_brokers)) || list(DISTINCT broker_id)) AS brokers
    FROM read_parquet($files)
    GROUP BY ALL
"""

#: How many of a broker's slowest samples the pooled p99 of a minute may need.
_TAILS = "SELECT cluster_id, max(attempted) // 100 + 1 AS reach FROM recorded GROUP BY ALL"

#: Each minute with the brokers of the last minute that has a record.
_EXPECTED = """
    SELECT cluster_id, minute, coalesce(records, 0) AS records,
        last_value(brokers IGNORE NULLS) OVER (PARTITION BY cluster_id ORDER BY minute) AS brokers
    FROM (SELECT cluster_id, unnest(generate_series("first", "last", INTERVAL 1 MINUTE)) AS minute FROM spans)
    LEFT JOIN recorded USING (cluster_id, minute)
    QUALIFY brokers IS NOT NULL
"""

_LEVELS = f"""
    WITH counted AS (
        SELECT *, if(leg = 'client', e2e_us, ack_us) AS samples, len(samples) AS succeeded,
            attempted >= {MIN_MEASURED_ATTEMPTS} AS measured, {_rank("attempted")} AS attempted_rank
        FROM read_parquet($files) JOIN tails USING (cluster_id)
    ), of_records AS (
        SELECT cluster_id, broker_id, leg, minute,
            {", ".join(f"{name}::BIGINT AS {name}" for name in _COUNTS)},
            succeeded,
            if(measured, succeeded / attempted, NULL) AS availability,
            if(measured, samples[(succeeded * 50 + 99) // 100], NULL)::BIGINT AS latency_p50_us,
            if(measured, samples[{_rank("succeeded")}], NULL)::BIGINT AS latency_p99_us,
            if(measured, if(attempted_rank <= succeeded, samples[attempted_rank],
                if(leg = 'client', {CENSORED_LATENCY_US["client"]}, {CENSORED_LATENCY_US["leader"]})
            ), NULL)::BIGINT AS latency_p99_censored_us,
            if(measured, samples[succeeded], NULL)::BIGINT AS latency_max_us,
            if(measured, ack_us[{_rank("len(ack_us)")}], NULL)::BIGINT AS ack_p99_us,
            if(cardinality(consume_failures) = 0, produce_failures,
                if(cardinality(produce_failures) = 0, consume_failures, NULL)) AS failures,
            1 AS vantages, measured, list_sort(list_distinct(led_by)) AS led_by,
            if(measured AND leg = 'client', samples[greatest(succeeded - reach + 1, 1):], NULL) AS slowest
        FROM counted
    ), silent AS (
        SELECT cluster_id, unnest(brokers) AS broker_id, minute FROM expected
        WHERE minute::DATE = $day AND records < {len(_LEGS)} * len(brokers)
    ), unmeasured AS (
        FROM silent CROSS JOIN (SELECT unnest({list(_LEGS)}) AS leg)
        ANTI JOIN of_records USING ({", ".join(_KEY)})
    )
    FROM of_records UNION ALL BY NAME
    SELECT *, {", ".join(f"0 AS {name}" for name in (*_COUNTS, "succeeded", "vantages"))}, false AS measured,
        [] AS led_by, MAP {{}} AS failures
    FROM unmeasured
"""

_MINUTES = f"""
    WITH of_minute AS (
        SELECT cluster_id, minute,
            max({{'us': latency_p99_us, 'id': -broker_id}})
                FILTER (is_client AND latency_p99_us IS NOT NULL) AS slowest_broker,
            max(latency_p99_censored_us) FILTER (is_client) AS latency_p99_censored_us,
            list_sort(flatten(list(slowest) FILTER (slowest IS NOT NULL))) AS slowest,
            min({{'ratio': availability, 'id': broker_id}}) FILTER (is_client) AS least_available,
            max({{'us': latency_p99_us, 'id': -broker_id}})
                FILTER (leg = 'leader' AND measured AND latency_p99_us IS NOT NULL) AS slowest_leader,
            count(*) FILTER (leg = 'client') AS brokers_expected,
            count(*) FILTER (is_client) AS brokers_measured,
            coalesce(sum(attempted) FILTER (is_client), 0)::BIGINT AS attempted,
            coalesce(sum(succeeded) FILTER (is_client), 0)::BIGINT AS succeeded
        FROM (SELECT *, leg = 'client' AND measured AS is_client FROM levels)
        GROUP BY ALL
    )
    SELECT cluster_id, minute,
        slowest_broker.us AS latency_p99_us, -slowest_broker.id AS latency_worst_home,
        latency_p99_censored_us,
        slowest[len(slowest) - (succeeded - {_rank("succeeded")})]::BIGINT AS latency_pooled_p99_us,
        least_available.ratio AS availability, least_available.id AS availability_worst_home,
        if(attempted > 0, succeeded / attempted, NULL) AS availability_pooled,
        slowest_leader.us AS leader_ack_p99_us, -slowest_leader.id AS leader_worst_broker,
        brokers_expected, brokers_measured, attempted, succeeded,
        if(latency_p99_censored_us > objective_us, 'unknown', NULL) AS cause
    FROM of_minute JOIN spans USING (cluster_id)
"""

_CLUSTER_WEEKS = f"""
    WITH of_week AS (
        SELECT m.cluster_id, week, closed, latency_objective_us, availability_objective,
            list_sort(list(latency_p99_us) FILTER (latency_p99_us IS NOT NULL)) AS p99s,
            list_sort(list(latency_p99_censored_us) FILTER (latency_p99_censored_us IS NOT NULL)) AS censored,
            list_sort(list(availability) FILTER (availability IS NOT NULL)) AS availabilities,
            sum(attempted) AS attempted, sum(succeeded) AS succeeded,
            count(*) FILTER (latency_p99_censored_us > latency_objective_us) AS bad_minutes,
            sum(1 - availability_pooled) AS availability_spent_minutes,
            count(*) FILTER (brokers_measured > 0) AS minutes_measured, count(*) AS minutes_expected,
            sum(brokers_measured) / sum(brokers_expected) AS coverage
        FROM minutes AS m JOIN weeks AS w
            ON m.cluster_id = w.cluster_id AND minute >= starts AND minute < ends
        GROUP BY ALL
    )
    SELECT cluster_id, week, closed,
        p99s[{_rank("len(p99s)")}] AS latency_p99_us,
        censored[{_rank("len(censored)")}] AS latency_p99_censored_us,
        availabilities[len(availabilities) - {_rank("len(availabilities)")} + 1] AS availability_p99,
        if(attempted > 0, succeeded / attempted, NULL) AS availability_ratio,
        bad_minutes, minutes_expected / {LATENCY_BUDGET_DIVISOR} AS latency_budget_minutes,
        latency_budget_minutes - bad_minutes AS latency_budget_left_minutes,
        (1 - availability_objective) * minutes_expected AS availability_budget_minutes,
        coalesce(availability_spent_minutes, 0) AS availability_spent_minutes,
        minutes_measured, minutes_expected, coverage
    FROM of_week
"""

_HIGHER_IS_WORSE = tuple(name for name, is_worse in METRICS.items() if is_worse)
_OF_VALUES = {
    name: f"values[if(metric IN {(*_HIGHER_IS_WORSE, '')}, rank_{percent}, len(values) - rank_{percent} + 1)]"
    for name, percent in (("median", 50), ("p90", 90), ("p99", 99))
}
_FLEET_WEEKS = f"""
    WITH metrics AS (
        UNPIVOT (SELECT cluster_id, week, closed, coverage,
            {", ".join(f"{name}::DOUBLE AS {name}" for name in METRICS)} FROM cluster_weeks)
        ON {", ".join(METRICS)} INTO NAME metric VALUE level
    ), pooled AS (
        SELECT week, metric, segment, segment_value,
            list_sort(list(level) FILTER (coverage >= {MIN_FLEET_COVERAGE})) AS values,
            bool_and(closed) AS closed,
            count(*) FILTER (coverage >= {MIN_FLEET_COVERAGE}) AS clusters
        FROM metrics JOIN segments USING (cluster_id)
        GROUP BY ALL
    ), ranked AS (
        SELECT *, {", ".join(f"(len(values) * {p} + 99) // 100 AS rank_{p}" for p in (50, 90, 99))}
        FROM pooled
    )
    SELECT week, metric, segment, segment_value, clusters, closed,
        {", ".join(f"{value} AS {name}" for name, value in _OF_VALUES.items())}
    FROM ranked
"""


def compute_by_polars(peer: PeerInput, out: Path) -> None:
    """Write the same files as compute_by_duckdb."""
    spans, weeks, segments = (pl.DataFrame(table) for table in (peer.spans, peer.weeks, peer.segments))
    recorded = _find_recorded(pl.scan_parquet(peer.all_files))
    reach = recorded.group_by("cluster_id").agg(reach=pl.col("attempted").max() // 100 + 1)
    expected = _find_expected(spans, recorded)
    for day, files in peer.files.items():
        levels = _compute_levels(pl.scan_parquet(list(files)), reach)
        rows = pl.concat([levels, _find_unmeasured(expected, levels, day)], how="diagonal").with_columns(
            pl.col(*_COUNTS, "succeeded", "vantages").fill_null(0),
            pl.col("measured").fill_null(False),
        )
        rows.drop("slowest").write_parquet(_prepare(out, "broker_minutes", day))
        _compute_minutes(rows, spans).write_parquet(_prepare(out, "cluster_minutes", day))
    clusters = _compute_cluster_weeks(pl.read_parquet(out / "cluster_minutes"), weeks)
    clusters.write_parquet(out / "cluster_weeks.parquet")
    _compute_fleet_weeks(clusters, segments).write_parquet(out / "fleet_weeks.parquet")


def _find_recorded(records: pl.LazyFrame) -> pl.DataFrame:
    of_minute = records.group_by("cluster_id", "minute").agg(
        records=pl.len(),
        attempted=pl.col("attempted").filter(pl.col("leg") == "client").sum(),
        listed=pl.col("expected_brokers").unique().explode().unique(),
        probed=pl.col("broker_id").unique(),
    )
    brokers = pl.col("listed").list.set_union("probed").list.sort()
    return of_minute.with_columns(brokers=brokers).drop("listed", "probed").collect(engine="streaming")


def _find_expected(spans: pl.DataFrame, recorded: pl.DataFrame) -> pl.DataFrame:
    minutes = spans.select("cluster_id", minute=pl.datetime_ranges("first", "last", "1m")).explode("minute")
    return (
        minutes.join(recorded, ["cluster_id", "minute"], "left")
        .sort("cluster_id", "minute")
        .with_columns(
            pl.col("records").fill_null(0), brokers=pl.col("brokers").forward_fill().over("cluster_id")
        )
        .drop_nulls("brokers")
    )


def _at(samples: pl.Expr, rank: pl.Expr) -> pl.Expr:
    # A negative index counts from the end.
    return samples.list.get(pl.when(rank > 0).then(rank - 1), null_on_oob=True).cast(pl.Int64)


def _rank_of(percent: int, count: pl.Expr) -> pl.Expr:
    return (count.cast(pl.Int64) * percent + 99) // 100


def _compute_levels(records: pl.LazyFrame, reach: pl.DataFrame) -> pl.DataFrame:
    is_client, samples, attempted = pl.col("leg") == "client", pl.col("samples"), pl.col("attempted")
    succeeded = samples.list.len().cast(pl.Int64)
    measured = attempted >= MIN_MEASURED_ATTEMPTS
    deadline = pl.when(is_client).then(CENSORED_LATENCY_US["client"]).otherwise(CENSORED_LATENCY_US["leader"])
    rank = _rank_of(99, attempted)
    censored = pl.when(rank <= succeeded).then(_at(samples, rank)).otherwise(deadline)
    failures = (
        pl.when(pl.col("consume_failures").map.len() == 0)
        .then(pl.col("produce_failures"))
        .when(pl.col("produce_failures").map.len() == 0)
        .then(pl.col("consume_failures"))
    )
    levels = {
        "availability": succeeded / attempted,
        "latency_p50_us": _at(samples, _rank_of(50, succeeded)),
        "latency_p99_us": _at(samples, _rank_of(99, succeeded)),
        "latency_p99_censored_us": censored.cast(pl.Int64),
        "latency_max_us": samples.list.last().cast(pl.Int64),
        "ack_p99_us": _at(pl.col("ack_us"), _rank_of(99, pl.col("ack_us").list.len())),
    }
    return (
        records.join(reach.lazy(), "cluster_id")
        .with_columns(samples=pl.when(is_client).then("e2e_us").otherwise("ack_us"))
        .select(
            *_KEY,
            *(pl.col(name).cast(pl.Int64) for name in _COUNTS),
            succeeded.alias("succeeded"),
            *(pl.when(measured).then(level).alias(name) for name, level in levels.items()),
            failures.alias("failures"),
            pl.lit(1).alias("vantages"),
            measured.alias("measured"),
            pl.col("led_by").list.unique().list.sort(),
            pl.when(measured & is_client).then(samples.list.tail("reach")).alias("slowest"),
        )
        .collect(engine="streaming")
    )


def _find_unmeasured(expected: pl.DataFrame, levels: pl.DataFrame, day: date) -> pl.DataFrame:
    silent = expected.filter(
        pl.col("minute").dt.date() == day, pl.col("records") < len(_LEGS) * pl.col("brokers").list.len()
    )
    rows = silent.select("cluster_id", "minute", broker_id="brokers", leg=pl.lit(list(_LEGS)))
    return (
        rows.explode("broker_id")
        .explode("leg")
        .join(levels, _KEY, "anti")
        .with_columns(led_by=pl.lit([], pl.List(pl.Int32)), failures=pl.lit({}, pl.Map(pl.String, pl.Int32)))
    )


def _compute_minutes(rows: pl.DataFrame, spans: pl.DataFrame) -> pl.DataFrame:
    is_client = (pl.col("leg") == "client") & pl.col("measured")
    is_leader = (pl.col("leg") == "leader") & pl.col("measured")

    def worst(value: str, where: pl.Expr, highest: bool) -> pl.Expr:
        """Return the lowest ID of the brokers that have the worst value."""
        values = pl.col(value).filter(where)
        is_worst = values == (values.max() if highest else values.min())
        return pl.col("broker_id").filter(where).filter(is_worst).min()

    attempted, succeeded = (pl.col(name).filter(is_client).sum() for name in ("attempted", "succeeded"))
    beyond = succeeded - _rank_of(99, succeeded)
    slowest = pl.col("slowest").filter(is_client).explode(empty_as_null=False).sort(descending=True)
    minutes = rows.group_by("cluster_id", "minute").agg(
        latency_p99_us=pl.col("latency_p99_us").filter(is_client).max(),
        latency_worst_home=worst("latency_p99_us", is_client, highest=True),
        latency_p99_censored_us=pl.col("latency_p99_censored_us").filter(is_client).max(),
        latency_pooled_p99_us=slowest.get(beyond, null_on_oob=True).cast(pl.Int64),
        availability=pl.col("availability").filter(is_client).min(),
        availability_worst_home=worst("availability", is_client, highest=False),
        availability_pooled=pl.when(attempted > 0).then(succeeded / attempted),
        leader_ack_p99_us=pl.col("latency_p99_us").filter(is_leader).max(),
        leader_worst_broker=worst("latency_p99_us", is_leader, highest=True),
        brokers_expected=(pl.col("leg") == "client").sum(),
        brokers_measured=is_client.sum(),
        attempted=attempted,
        succeeded=succeeded,
    )
    is_bad = pl.col("latency_p99_censored_us") > pl.col("objective_us")
    with_objectives = minutes.join(spans.select("cluster_id", "objective_us"), "cluster_id")
    return with_objectives.with_columns(cause=pl.when(is_bad).then(pl.lit("unknown"))).drop("objective_us")


def _compute_cluster_weeks(minutes: pl.DataFrame, weeks: pl.DataFrame) -> pl.DataFrame:
    rows = minutes.join(weeks, "cluster_id").filter(
        pl.col("minute") >= pl.col("starts"), pl.col("minute") < pl.col("ends")
    )

    def quantile(name: str, from_low_end: bool = False) -> pl.Expr:
        values = pl.col(name).drop_nulls().sort(descending=from_low_end)
        return values.get(_rank_of(99, values.len()) - 1, null_on_oob=True)

    bad = (pl.col("latency_p99_censored_us") > pl.col("latency_objective_us")).sum().cast(pl.Int64)
    budget, attempted = pl.len() / LATENCY_BUDGET_DIVISOR, pl.col("attempted").sum()
    keys = ["cluster_id", "week", "closed", "latency_objective_us", "availability_objective"]
    return rows.group_by(keys).agg(
        latency_p99_us=quantile("latency_p99_us"),
        latency_p99_censored_us=quantile("latency_p99_censored_us"),
        availability_p99=quantile("availability", from_low_end=True),
        availability_ratio=pl.when(attempted > 0).then(pl.col("succeeded").sum() / attempted),
        bad_minutes=bad,
        latency_budget_minutes=budget,
        latency_budget_left_minutes=budget - bad,
        availability_budget_minutes=(1 - pl.col("availability_objective").first()) * pl.len(),
        availability_spent_minutes=(1 - pl.col("availability_pooled")).sum(),
        minutes_measured=(pl.col("brokers_measured") > 0).sum(),
        minutes_expected=pl.len(),
        coverage=pl.col("brokers_measured").sum() / pl.col("brokers_expected").sum(),
    )


def _compute_fleet_weeks(clusters: pl.DataFrame, segments: pl.DataFrame) -> pl.DataFrame:
    levels = clusters.select(
        "cluster_id", "week", "closed", "coverage", *(pl.col(name).cast(pl.Float64) for name in METRICS)
    ).unpivot(list(METRICS), index=["cluster_id", "week", "closed", "coverage"], variable_name="metric")
    # A low availability is bad: of such metrics the negated values are ranked.
    sign = pl.when(pl.col("metric").is_in(_HIGHER_IS_WORSE)).then(1.0).otherwise(-1.0)
    counts = (pl.col("coverage") >= MIN_FLEET_COVERAGE) & pl.col("value").is_not_null()
    values = (pl.col("value") * pl.col("sign")).filter(counts).sort()
    names = {"median": 50, "p90": 90, "p99": 99}
    return (
        levels.with_columns(sign=sign)
        .join(segments, "cluster_id")
        .group_by("week", "metric", "segment", "segment_value")
        .agg(
            *(
                (
                    values.get(_rank_of(percent, values.len()) - 1, null_on_oob=True) * pl.col("sign").first()
                ).alias(name)
                for name, percent in names.items()
            ),
            clusters=counts.sum(),
            closed=pl.col("closed").all(),
        )
    )


#: The peers by name.
PEERS: Mapping[str, Callable[[PeerInput, Path], None]] = {
    "duckdb": compute_by_duckdb,
    "polars": compute_by_polars,
}
