"""The constants of the service level definitions, and a broker-minute's levels in plain Python.

The pipeline computes the same levels column by column; a test compares both.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from fleetgauge_core.slo.quantile import nearest_rank, quantile

#: A broker-minute with fewer pooled on-time attempts counts as not measured.
MIN_MEASURED_ATTEMPTS = 50
#: The latency of a failed probe by leg: its deadline.
CENSORED_LATENCY_US = {"client": 10_000_000, "leader": 5_000_000}
#: One minute in so many may be over the latency objective (OpenSLO Timeslices, target 0.99).
LATENCY_BUDGET_DIVISOR = 100
#: Clusters with a lower coverage are left out of the fleet's quantiles.
MIN_FLEET_COVERAGE = 0.9
#: Version of the service level definitions, stored with every week.
DEFINITION = "v1"


@dataclass(frozen=True, slots=True)
class BrokerMinuteLevels:
    """Service levels of one broker-minute and leg; latencies in microseconds, None without a success."""

    availability: float
    latency_p50_us: int | None
    latency_p99_us: int | None
    latency_p99_censored_us: int
    latency_max_us: int | None


def compute_broker_minute_levels(
    leg: str, attempted: int, latencies_us: Sequence[int]
) -> BrokerMinuteLevels | None:
    """Return the levels of a broker-minute, or None if it counts as not measured.

    ``latencies_us``: the ascending latencies of the successes, pooled over vantages.
    """
    if attempted < MIN_MEASURED_ATTEMPTS:
        return None
    return BrokerMinuteLevels(
        availability=len(latencies_us) / attempted,
        latency_p50_us=quantile(50, latencies_us),
        latency_p99_us=quantile(99, latencies_us),
        latency_p99_censored_us=_censored_p99_us(attempted, latencies_us, CENSORED_LATENCY_US[leg]),
        latency_max_us=latencies_us[-1] if latencies_us else None,
    )


def _censored_p99_us(attempted: int, latencies_us: Sequence[int], deadline_us: int) -> int:
    failures = attempted - len(latencies_us)
    ascending = sorted([*latencies_us, *[deadline_us] * failures])
    return ascending[nearest_rank(99, attempted) - 1]


def availability_budget_minutes(objective: float, minutes_expected: int) -> float:
    """Return the minutes of unavailability that an objective allows: 5.04 for 99.95% of a week."""
    return (1 - objective) * minutes_expected


def latency_budget_minutes(minutes_expected: int) -> float:
    """Return the minutes that may be over the latency objective: 100.8 for a week of 10,080 minutes."""
    return minutes_expected / LATENCY_BUDGET_DIVISOR
