"""Builders of probe records of a single cluster."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest

from tests.oracle.operations import NO_OPERATIONS
from tests.oracle.oracle import ClusterSettings, Operations, Settings, Tables, evaluate

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
LONG_AFTER = datetime(2030, 1, 1, tzinfo=UTC)


class Bench:
    """Builds records of cluster 'c' and evaluates them with the oracle."""

    def __init__(self) -> None:
        self._sequence = count()

    def record(
        self,
        minute: datetime | int = 0,
        broker: int = 1,
        leg: str = "client",
        succeeded_us: Sequence[int] = (1_000,) * 100,
        failed: int = 0,
        **fields: Any,
    ) -> dict[str, Any]:
        """Return a record with ``failed`` probes not acknowledged and all others successful."""
        is_client = leg == "client"
        successes = sorted(succeeded_us)
        return {
            "run_id": "run",
            "sequence": next(self._sequence),
            "vantage": "zone-a",
            "cluster_id": "c",
            "broker_id": broker,
            "leg": leg,
            "minute": MONDAY + timedelta(minutes=minute) if isinstance(minute, int) else minute,
            "expected_brokers": [broker],
            "attempted": len(successes) + failed,
            "acknowledged": len(successes),
            "received": len(successes) if is_client else 0,
            "ack_us": successes,
            "e2e_us": successes if is_client else [],
            "produce_failures": {"_MSG_TIMED_OUT": failed} if failed else {},
            "consume_failures": {},
            "lost": 0,
            "duplicated": 0,
            "out_of_order": 0,
            "schedule_lag_p95_us": 0,
            "schedule_lag_max_us": 0,
            "led_by": [broker],
        } | fields

    def evaluate(
        self,
        *records: dict[str, Any],
        clock: datetime = LONG_AFTER,
        zone: str = "UTC",
        operations: Operations = NO_OPERATIONS,
        **cluster: Any,
    ) -> Tables:
        settings = Settings((ClusterSettings("c", **cluster),), week_zone=zone)
        return evaluate(records, settings, clock, operations)


@pytest.fixture
def bench() -> Bench:
    return Bench()
