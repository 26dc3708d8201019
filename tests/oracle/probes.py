"""The random results of one minute's probes by the broker's behavior; counts add up, latencies ascend."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.oracle.script import BrokerBehavior

ProbeRecord = dict[str, Any]

ACK_DEADLINE_US = 5_000_000
E2E_DEADLINE_US = 10_000_000

PRODUCE_CODES = ("_MSG_TIMED_OUT", "NOT_ENOUGH_REPLICAS", "REQUEST_TIMED_OUT", "SOMETHING_NEW")
CONSUME_CODES = ("NOT_RECEIVED", "LATE")
#: Two failures of a hundred put the censored p99 at the deadline, so healthy brokers rarely have them.
FAILURES_OF_HEALTHY_BROKERS = (0,) * 600 + (1,) * 30 + (2,)
LEADER_CODES = ("NOT_LEADING", "_MSG_TIMED_OUT")


@dataclass(frozen=True, slots=True)
class Latencies:
    """Ascending acknowledgement latencies, and the end-to-end latencies of the same probes.

    Probes are drawn from this pool, so that equal latencies occur and the samples of a week share integers.
    """

    ack_us: Sequence[int]
    e2e_us: Sequence[int]


def _latencies(rng: Random, median_us: float, spread: float, size: int = 4000) -> Latencies:
    ack_us = sorted(
        min(round(rng.lognormvariate(0, spread) * median_us), ACK_DEADLINE_US) for _ in range(size)
    )
    e2e_us = sorted(min(ack + round(rng.expovariate(1 / median_us)), E2E_DEADLINE_US) for ack in ack_us)
    return Latencies(ack_us, e2e_us)


def draw_latencies_by_behavior(rng: Random) -> dict[BrokerBehavior, Latencies]:
    median_us = rng.uniform(2_000, 9_000)
    healthy = _latencies(rng, median_us, 0.5)
    return {
        BrokerBehavior.HEALTHY: healthy,
        BrokerBehavior.DOWN: healthy,
        BrokerBehavior.NOT_RECEIVED: healthy,
        BrokerBehavior.SLOW: _latencies(rng, 25_000, 0.4),
        BrokerBehavior.FLAKY: _latencies(rng, 900_000, 1.5),
    }


def _slowest_exactly(latencies_us: list[int], exact_us: int | None) -> list[int]:
    """Return the latencies with the last three at ``exact_us`` and none above it."""
    if exact_us is None:
        return latencies_us
    return [min(us, exact_us) for us in latencies_us[:-3]] + [exact_us] * len(latencies_us[-3:])


def client_probes(
    rng: Random, attempted: int, behavior: BrokerBehavior, latencies: Latencies, exact_us: int | None
) -> ProbeRecord:
    """Return a client record's results; some failed probes are not acknowledged, others received late."""
    unacknowledged = _draw_failed(rng, attempted, behavior)
    acknowledged = attempted - unacknowledged
    lost = (
        acknowledged
        if behavior is BrokerBehavior.NOT_RECEIVED
        else _draw_failed(rng, acknowledged, behavior) // 3
    )
    drawn = sorted(rng.choices(range(len(latencies.ack_us)), k=acknowledged))
    succeeded = acknowledged - lost
    late = rng.randint(0, lost + unacknowledged) if behavior is not BrokerBehavior.DOWN else 0
    return {
        "attempted": attempted,
        "acknowledged": acknowledged,
        "received": succeeded + late,
        "ack_us": [latencies.ack_us[i] for i in drawn],
        "e2e_us": _slowest_exactly([latencies.e2e_us[i] for i in drawn[:succeeded]], exact_us),
        "produce_failures": _codes(rng, unacknowledged, PRODUCE_CODES),
        "consume_failures": _codes(rng, lost, CONSUME_CODES),
        "lost": lost,
        "duplicated": rng.choice([0, 0, 0, 1, 3]),
        "out_of_order": rng.choice([0, 0, 0, 2]),
    }


def leader_probes(
    rng: Random, attempted: int, behavior: BrokerBehavior, latencies: Latencies, exact_us: int | None
) -> ProbeRecord:
    """Return a leader record's results; no probe is due while another broker leads."""
    attempted = 0 if rng.random() < 0.02 else attempted
    failed = _draw_failed(rng, attempted, behavior)
    acknowledged = attempted - failed
    ack_us = sorted(rng.choices(latencies.ack_us, k=acknowledged))
    return {
        "attempted": attempted,
        "acknowledged": acknowledged,
        "received": 0,
        "ack_us": _slowest_exactly(ack_us, exact_us),
        "e2e_us": [],
        "produce_failures": _codes(rng, failed, LEADER_CODES),
        "consume_failures": {},
        "lost": 0,
        "duplicated": 0,
        "out_of_order": 0,
    }


def _draw_failed(rng: Random, attempted: int, behavior: BrokerBehavior) -> int:
    """Return how many of the attempted probes fail; a p99 ignores one failure of a hundred."""
    if behavior is BrokerBehavior.DOWN:
        return attempted
    failures = {
        BrokerBehavior.FLAKY: rng.randint(1, max(1, attempted)),
        BrokerBehavior.SLOW: rng.choice([0, 0, 1, 2]),
    }
    return min(attempted, failures.get(behavior, rng.choice(FAILURES_OF_HEALTHY_BROKERS)))


def _codes(rng: Random, failed: int, codes: Sequence[str]) -> dict[str, int]:
    """Return the failures divided between one or two codes."""
    code, other = rng.sample(codes, 2)
    of_other = rng.randint(0, failed)
    return {code: count for code, count in ((code, failed - of_other), (other, of_other)) if count}
