"""The numbers that the definitions fix, and the broker-minute in plain Python.

Spark computes the same over millions of rows; a test holds it to these.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fleetgauge_core.slo.quantile import quantile, rank

#: A broker-minute with fewer pooled on-time attempts says too little.
MEASURED_ATTEMPTS = 50
#: A failed probe counts as slow as its deadline.
CENSORED_US = {"client": 10_000_000, "leader": 5_000_000}
#: Share of minutes that may be over the latency objective (OpenSLO Timeslices, target 0.99).
LATENCY_BUDGET_DIVISOR = 100
#: Clusters below it leave the fleet's quantiles.
FLEET_COVERAGE = 0.9
#: Changes when a definition does, and is written beside every week.
DEFINITION = "v1"


@dataclass(frozen=True, slots=True)
class BrokerMinuteLevels:
    """Service levels of one broker-minute and leg; microseconds, None where there is nothing to say."""

    availability: float
    latency_p50_us: int | None
    latency_p99_us: int | None
    latency_p99_censored_us: int
    latency_max_us: int | None


def broker_minute_levels(leg: str, attempted: int, latencies_us: Sequence[int]) -> BrokerMinuteLevels | None:
    """Of the pooled successes' ascending latencies; None where the minute counts as not measured."""
    if attempted < MEASURED_ATTEMPTS:
        return None
    return BrokerMinuteLevels(
        availability=len(latencies_us) / attempted,
        latency_p50_us=quantile(50, latencies_us),
        latency_p99_us=quantile(99, latencies_us),
        latency_p99_censored_us=_censored_p99(attempted, latencies_us, CENSORED_US[leg]),
        latency_max_us=latencies_us[-1] if latencies_us else None,
    )


def _censored_p99(attempted: int, latencies_us: Sequence[int], deadline_us: int) -> int:
    failures = attempted - len(latencies_us)
    ascending = sorted([*latencies_us, *[deadline_us] * failures])
    return ascending[rank(99, attempted) - 1]


def availability_budget_minutes(objective: float, minutes_expected: int) -> float:
    """99.95% of a 10,080-minute week leaves 5.04 minutes."""
    return (1 - objective) * minutes_expected


def latency_budget_minutes(minutes_expected: int) -> float:
    """1% of a 10,080-minute week is 100.8 minutes."""
    return minutes_expected / LATENCY_BUDGET_DIVISOR
