"""The script of a cluster: who is expected, who is ill and who records nothing, minute by minute."""

from dataclasses import dataclass
from enum import StrEnum
from random import Random

LATENCY_OBJECTIVE_US = 100_000

#: How often something goes wrong in a cluster (an hour and broker), by its position: with little
#: of it the weekly p99 lies among ordinary minutes, with much of it coverage falls under 90%.
TROUBLE = (0.03, 0.5, 3.0)
FIRST_BROKER = (1, 0, 101)


class Mood(StrEnum):
    """How a broker behaves during a minute."""

    WELL = "well"
    SLOW = "slow"
    """Its p99 lies around the latency objective."""
    FLAKY = "flaky"
    """Some to most probes fail, the others take up to the deadline."""
    DOWN = "down"
    """Every probe is attempted, none acknowledged."""
    DEAF = "deaf"
    """Everything is acknowledged, nothing comes back in time."""


def cluster_id(position: int) -> str:
    return f"cluster-{position}"


def broker_ids(position: int) -> tuple[int, ...]:
    """Three or four ids; numbering differs from cluster to cluster."""
    first = FIRST_BROKER[position % len(FIRST_BROKER)]
    return tuple(range(first, first + 3 + position % 2))


@dataclass(frozen=True, slots=True)
class Script:
    """What happens to one cluster, by minute counted from the start."""

    position: int
    first: int
    last: int
    expected: tuple[frozenset[int], ...]
    probed: tuple[frozenset[int], ...]
    mood: dict[int, tuple[Mood, ...]]
    nobody_records: frozenset[int]
    exact_p99_us: dict[int, int]
    """Minutes in which the slowest probes of all brokers took exactly this long."""


def cluster_script(rng: Random, position: int, minutes: int) -> Script:
    trouble = TROUBLE[position % len(TROUBLE)]
    edge = max(1, minutes // 12)
    first, last = (0, minutes) if position == 0 else (rng.randrange(edge), minutes - rng.randrange(edge))
    expected, probed = _membership(rng, position, minutes)
    return Script(
        position=position,
        first=first,
        last=last,
        expected=expected,
        probed=probed,
        mood={broker: _moods(rng, minutes, trouble) for broker in broker_ids(position)},
        nobody_records=spans(rng, minutes, trouble / 2, longest=12),
        exact_p99_us={
            minute: LATENCY_OBJECTIVE_US + rng.randrange(2) for minute in spans(rng, minutes, 1.0, longest=2)
        },
    )


def spans(rng: Random, minutes: int, an_hour: float, longest: int) -> frozenset[int]:
    """Minutes covered by random spans, about so many of them an hour."""
    count = int(an_hour * minutes / 60 + rng.random())
    starts = [(rng.randrange(minutes), rng.randint(1, longest)) for _ in range(count)]
    return frozenset(minute for at, length in starts for minute in range(at, min(at + length, minutes)))


def _moods(rng: Random, minutes: int, trouble: float) -> tuple[Mood, ...]:
    slow = spans(rng, minutes, trouble, longest=8)
    flaky = spans(rng, minutes, trouble, longest=4)
    down = spans(rng, minutes, trouble / 2, longest=6)
    deaf = spans(rng, minutes, trouble / 4, longest=2)

    def mood(minute: int) -> Mood:
        ill = ((deaf, Mood.DEAF), (down, Mood.DOWN), (flaky, Mood.FLAKY), (slow, Mood.SLOW))
        return next((mood for span, mood in ill if minute in span), Mood.WELL)

    return tuple(mood(minute) for minute in range(minutes))


def _membership(
    rng: Random, position: int, minutes: int
) -> tuple[tuple[frozenset[int], ...], tuple[frozenset[int], ...]]:
    """Who is registered and who is probed, by minute; the last broker joins, the first leaves.

    A joiner may be probed a minute before an agent lists it, or minutes after;
    a leaver may be probed for a minute more.
    """
    brokers = broker_ids(position)
    joins = dict.fromkeys(brokers, 0) | {brokers[-1]: rng.randint(minutes // 10, minutes // 3)}
    leaves = dict.fromkeys(brokers, minutes)
    if position % 2 == 0:
        leaves[brokers[0]] = rng.randint(minutes // 2, minutes - 1)
    delay, overhang = rng.choice([-1, 0, 4]), rng.choice([-3, 0, 1])

    def between(minute: int, after_join: int, after_leave: int) -> frozenset[int]:
        return frozenset(
            b for b in brokers if joins[b] + after_join * (joins[b] > 0) <= minute < leaves[b] + after_leave
        )

    return (
        tuple(between(minute, 0, 0) for minute in range(minutes)),
        tuple(between(minute, delay, overhang) for minute in range(minutes)),
    )
