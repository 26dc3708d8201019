"""Aggregates of broker-minutes on which the batch suite is validated."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

SilverFacts = dict[str, float | None]

#: Each aggregate, and how its values of several parts combine.
_MERGERS: Mapping[str, Callable[[Iterable[float]], float | None]] = {
    "availability_min": partial(min, default=None),
    "availability_max": partial(max, default=None),
    "quantiles_out_of_order": sum,
    "more_successes_than_attempts": sum,
    "measured_without_attempts": sum,
    "expected_minutes": sum,
}


def compute_silver_facts(brokers: pa.Table) -> SilverFacts:
    """Compute the aggregates of broker-minutes (the columns of silver/broker_minutes)."""
    availability = pc.min_max(brokers["availability"]).as_py()
    median_above = pc.greater(brokers["latency_p50_us"], brokers["latency_p99_us"])
    p99_above = pc.greater(brokers["latency_p99_us"], brokers["latency_max_us"])
    without_attempts = pc.and_(brokers["measured"], pc.equal(brokers["attempted"], 0))
    return {
        "availability_min": availability["min"],
        "availability_max": availability["max"],
        "quantiles_out_of_order": _count(pc.or_kleene(median_above, p99_above)),
        "more_successes_than_attempts": _count(pc.greater(brokers["succeeded"], brokers["attempted"])),
        "measured_without_attempts": _count(without_attempts),
        "expected_minutes": brokers.num_rows,
    }


def _count(flags: pa.ChunkedArray) -> int:
    return pc.sum(flags).as_py() or 0


def merge_silver_facts(facts: Sequence[SilverFacts]) -> SilverFacts:
    """Combine the aggregates of several parts into those of all of them."""
    return {
        name: merge(value for part in facts if (value := part[name]) is not None)
        for name, merge in _MERGERS.items()
    }
