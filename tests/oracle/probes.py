"""What becomes of one minute's probes, by the broker's mood: counts add up, latencies ascend."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.oracle.script import Mood

Record = dict[str, Any]

ACK_DEADLINE_US = 5_000_000
E2E_DEADLINE_US = 10_000_000

PRODUCE_CODES = ("_MSG_TIMED_OUT", "NOT_ENOUGH_REPLICAS", "REQUEST_TIMED_OUT", "SOMETHING_NEW")
CONSUME_CODES = ("NOT_RECEIVED", "LATE")
#: Two failures in a hundred are a censored p99 at the deadline, so they are rare among the well.
FAILED_WHEN_WELL = (0,) * 600 + (1,) * 30 + (2,)
LEADER_CODES = ("NOT_LEADING", "_MSG_TIMED_OUT")


@dataclass(frozen=True, slots=True)
class Latencies:
    """Ascending acks, and at the same index the end-to-end latency of the same probe.

    Probes are drawn from a pool, so that equal latencies occur and a whole
    week of samples shares its integers.
    """

    ack_us: Sequence[int]
    e2e_us: Sequence[int]


def _latencies(rng: Random, median_us: float, spread: float, size: int = 4000) -> Latencies:
    ack_us = sorted(
        min(round(rng.lognormvariate(0, spread) * median_us), ACK_DEADLINE_US) for _ in range(size)
    )
    e2e_us = sorted(min(ack + round(rng.expovariate(1 / median_us)), E2E_DEADLINE_US) for ack in ack_us)
    return Latencies(ack_us, e2e_us)


def latencies_by_mood(rng: Random) -> dict[Mood, Latencies]:
    median_us = rng.uniform(2_000, 9_000)
    well = _latencies(rng, median_us, 0.5)
    return {
        Mood.WELL: well,
        Mood.DOWN: well,
        Mood.DEAF: well,
        Mood.SLOW: _latencies(rng, 25_000, 0.4),
        Mood.FLAKY: _latencies(rng, 900_000, 1.5),
    }


def _slowest_exactly(latencies_us: list[int], exact_us: int | None) -> list[int]:
    """The last three take exactly so long and nothing takes longer."""
    if exact_us is None:
        return latencies_us
    return [min(us, exact_us) for us in latencies_us[:-3]] + [exact_us] * len(latencies_us[-3:])


def client_probes(
    rng: Random, attempted: int, mood: Mood, latencies: Latencies, exact_us: int | None
) -> Record:
    """Not acknowledged, or acknowledged and not received in time; some come back late all the same."""
    unacknowledged = _failed(rng, attempted, mood)
    acknowledged = attempted - unacknowledged
    lost = acknowledged if mood is Mood.DEAF else _failed(rng, acknowledged, mood) // 3
    drawn = sorted(rng.choices(range(len(latencies.ack_us)), k=acknowledged))
    succeeded = acknowledged - lost
    late = rng.randint(0, lost + unacknowledged) if mood is not Mood.DOWN else 0
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
    rng: Random, attempted: int, mood: Mood, latencies: Latencies, exact_us: int | None
) -> Record:
    """Acknowledged by the home or not; none are due while it is in sync and another leads."""
    attempted = 0 if rng.random() < 0.02 else attempted
    failed = _failed(rng, attempted, mood)
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


def _failed(rng: Random, attempted: int, mood: Mood) -> int:
    """How many of so many fail; one failure in a hundred is what a p99 just forgives."""
    if mood is Mood.DOWN:
        return attempted
    usual = {Mood.FLAKY: rng.randint(1, max(1, attempted)), Mood.SLOW: rng.choice([0, 0, 1, 2])}
    return min(attempted, usual.get(mood, rng.choice(FAILED_WHEN_WELL)))


def _codes(rng: Random, failed: int, codes: Sequence[str]) -> dict[str, int]:
    """The failures shared out over one or two codes; no code with none."""
    one, other = rng.sample(codes, 2)
    of_other = rng.randint(0, failed)
    return {code: count for code, count in ((one, failed - of_other), (other, of_other)) if count}
