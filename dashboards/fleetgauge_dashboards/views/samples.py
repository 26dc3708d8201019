"""The probes behind a minute: from bronze while it holds them, then from evidence."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from fleetgauge_core.slo.levels import BrokerMinuteLevels, broker_minute_levels
from fleetgauge_dashboards.views.deciding_minutes import Row

Source = Literal["bronze", "evidence", "late", "expired"]


@dataclass(frozen=True, slots=True)
class BrokerSamples:
    """One broker and leg: every success's latency, ascending, of the vantages that were on time."""

    broker_id: int
    leg: str
    attempted: int
    failures: Mapping[str, int]
    latencies_us: tuple[int, ...]

    @property
    def levels(self) -> BrokerMinuteLevels | None:
        return broker_minute_levels(self.leg, self.attempted, self.latencies_us)


@dataclass(frozen=True, slots=True)
class MinuteSamples:
    """A minute's brokers, and where their samples were found."""

    minute: datetime
    source: Source
    brokers: tuple[BrokerSamples, ...]


def minute_samples(
    minutes: Iterable[datetime], records: Sequence[Row], evidence: Sequence[Row], agent_late_us: int
) -> tuple[MinuteSamples, ...]:
    """``records`` are bronze's; those of a late vantage leave pooling, as in silver."""
    on_time = [row for row in records if row["schedule_lag_p95_us"] <= agent_late_us]
    late = {row["minute"] for row in records}
    return tuple(_minute_samples(at, on_time, evidence, late) for at in sorted(set(minutes)))


def _minute_samples(
    at: datetime, records: Iterable[Row], evidence: Iterable[Row], late: Set[datetime]
) -> MinuteSamples:
    choices: tuple[tuple[Source, Iterable[Row]], ...] = (("bronze", records), ("evidence", evidence))
    for source, rows in choices:
        own = [row for row in rows if row["minute"] == at]
        if own:
            return MinuteSamples(at, source, _pooled(own))
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
    return BrokerSamples(
        broker_id, leg, sum(row["attempted"] for row in rows), dict(failures), tuple(latencies)
    )


def _failures(row: Row) -> Counter[str]:
    """Codes and counts; arrow gives a map as pairs. Bronze keeps two maps, evidence their sum."""
    names = ("produce_failures", "consume_failures", "failures")
    return sum((Counter(dict(row.get(name) or ())) for name in names), Counter[str]())


def held_minutes(silver: Sequence[Row], evidence: Sequence[Row]) -> list[Row]:
    """Cluster-minutes from silver; where they have expired, what evidence kept. In time's order."""
    held = {row["minute"].astimezone(UTC) for row in silver}
    kept = [row for row in minutes_from_evidence(evidence) if row["minute"] not in held]
    return sorted([*silver, *kept], key=lambda row: row["minute"].astimezone(UTC))


def minutes_from_evidence(evidence: Sequence[Row]) -> list[dict[str, Any]]:
    """Cluster-minutes as silver had them, of the brokers whose samples were kept."""
    by_minute: dict[datetime, list[Row]] = {}
    for row in evidence:
        by_minute.setdefault(row["minute"].astimezone(UTC), []).append(row)
    return [_cluster_minute(at, _pooled(by_minute[at])) for at in sorted(by_minute)]


def _cluster_minute(at: datetime, brokers: Iterable[BrokerSamples]) -> dict[str, Any]:
    seen = [(one.broker_id, levels) for one in brokers if one.leg == "client" and (levels := one.levels)]
    slowest = max(
        ((levels.latency_p99_us, -home) for home, levels in seen if levels.latency_p99_us is not None),
        default=(None, None),
    )
    least = min(((levels.availability, home) for home, levels in seen), default=(None, None))
    return {
        "minute": at,
        "latency_p99_us": slowest[0],
        "latency_worst_home": None if slowest[1] is None else -slowest[1],
        "latency_p99_censored_us": max((levels.latency_p99_censored_us for _, levels in seen), default=None),
        "availability": least[0],
        "availability_worst_home": least[1],
        "cause": None,
    }
