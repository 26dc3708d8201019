"""Find the probe samples behind a minute: in bronze while it holds them, then in the evidence."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from fleetgauge_core.contract.failure_codes import split_failures
from fleetgauge_core.slo.levels import BrokerMinuteLevels, compute_broker_minute_levels
from fleetgauge_dashboards.views.deciding_minutes import Row

SampleSource = Literal["bronze", "evidence", "late", "expired"]


@dataclass(frozen=True, slots=True)
class BrokerSamples:
    """The samples of one broker and leg, pooled over the vantages that were on time.

    ``latencies_us`` are the successes, ascending; ``failures`` counts by error code, ``agent_failures`` those
    by the agent's own fault, which are in no attempt.
    """

    broker_id: int
    leg: str
    attempted: int
    failures: Mapping[str, int]
    latencies_us: tuple[int, ...]
    agent_failures: Mapping[str, int] = field(default_factory=dict)

    @property
    def levels(self) -> BrokerMinuteLevels | None:
        """Return the broker-minute's service levels; None where it is not measured."""
        return compute_broker_minute_levels(self.leg, self.attempted, self.latencies_us)


@dataclass(frozen=True, slots=True)
class MinuteSamples:
    """The samples of all brokers in a minute, and where they were found."""

    minute: datetime
    source: SampleSource
    brokers: tuple[BrokerSamples, ...]


def collect_minute_samples(
    minutes: Iterable[datetime], records: Sequence[Row], evidence: Sequence[Row], agent_late_us: int
) -> tuple[MinuteSamples, ...]:
    """Return the samples of each of the minutes, ascending.

    ``records`` are bronze's. Records of a vantage whose schedule lag exceeds ``agent_late_us`` do not count,
    as in silver.
    """
    on_time = [row for row in records if row["schedule_lag_p95_us"] <= agent_late_us]
    late = {row["minute"] for row in records}
    return tuple(_minute_samples(at, on_time, evidence, late) for at in sorted(set(minutes)))


def _minute_samples(
    at: datetime, records: Iterable[Row], evidence: Iterable[Row], late: Set[datetime]
) -> MinuteSamples:
    sources: tuple[tuple[SampleSource, Iterable[Row]], ...] = (("bronze", records), ("evidence", evidence))
    for source, rows in sources:
        of_minute = [row for row in rows if row["minute"] == at]
        if of_minute:
            return MinuteSamples(at, source, _pooled(of_minute))
    return MinuteSamples(at, "late" if at in late else "expired", ())


def _pooled(rows: Iterable[Row]) -> tuple[BrokerSamples, ...]:
    by_key: dict[tuple[int, str], list[Row]] = {}
    for row in rows:
        by_key.setdefault((row["broker_id"], row["leg"]), []).append(row)
    return tuple(_pool(*key, by_key[key]) for key in sorted(by_key))


def _pool(broker_id: int, leg: str, rows: Sequence[Row]) -> BrokerSamples:
    column = "e2e_us" if leg == "client" else "ack_us"
    failures = sum((_failures(row) for row in rows), Counter[str]())
    latencies = sorted(us for row in rows for us in row[column] or ())
    attempted = sum(row["attempted"] for row in rows)
    counted, uncounted = split_failures(failures, attempted - len(latencies))
    return BrokerSamples(broker_id, leg, attempted, counted, tuple(latencies), uncounted)


def _failures(row: Row) -> Counter[str]:
    """Return failures by error code.

    Bronze keeps two maps, evidence their sum; Arrow returns a map as pairs.
    """
    names = ("produce_failures", "consume_failures", "failures")
    return sum((Counter(dict(row.get(name) or ())) for name in names), Counter[str]())


def available_minutes(silver: Sequence[Row], evidence: Sequence[Row]) -> list[Row]:
    """Return the cluster-minutes of silver, with those that expired rebuilt from evidence, in time order."""
    stored = {row["minute"].astimezone(UTC) for row in silver}
    rebuilt = [row for row in rebuild_minutes_from_evidence(evidence) if row["minute"] not in stored]
    return sorted([*silver, *rebuilt], key=lambda row: row["minute"].astimezone(UTC))


def rebuild_minutes_from_evidence(evidence: Sequence[Row]) -> list[dict[str, Any]]:
    """Return cluster-minutes as silver had them, from the brokers whose samples were kept."""
    by_minute: dict[datetime, list[Row]] = {}
    for row in evidence:
        by_minute.setdefault(row["minute"].astimezone(UTC), []).append(row)
    return [_cluster_minute(at, _pooled(by_minute[at])) for at in sorted(by_minute)]


def _cluster_minute(at: datetime, brokers: Iterable[BrokerSamples]) -> dict[str, Any]:
    measured = [
        (broker.broker_id, levels)
        for broker in brokers
        if broker.leg == "client" and (levels := broker.levels)
    ]
    slowest = max(
        ((levels.latency_p99_us, -home) for home, levels in measured if levels.latency_p99_us is not None),
        default=(None, None),
    )
    least_available = min(((levels.availability, home) for home, levels in measured), default=(None, None))
    return {
        "minute": at,
        "latency_p99_us": slowest[0],
        "latency_worst_home": None if slowest[1] is None else -slowest[1],
        "latency_p99_censored_us": max(
            (levels.latency_p99_censored_us for _, levels in measured), default=None
        ),
        "availability": least_available[0],
        "availability_worst_home": least_available[1],
        "cause": None,
    }
