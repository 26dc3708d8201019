"""The script of a cluster: its expected brokers, their faults and missing records, minute by minute."""

from dataclasses import dataclass
from enum import StrEnum
from random import Random

LATENCY_OBJECTIVE_US = 100_000

#: Faults per hour and broker of a cluster, by its position. With few faults the weekly p99 is that of an
#: ordinary minute; with many of them coverage falls below 90%.
FAULT_RATES = (0.03, 0.5, 3.0)
FIRST_BROKER = (1, 0, 101)


class BrokerBehavior(StrEnum):
    """How a broker behaves during a minute."""

    HEALTHY = "healthy"
    SLOW = "slow"
    """Its p99 is close to the latency objective."""
    FLAKY = "flaky"
    """Some or most probes fail; the others take up to the deadline."""
    DOWN = "down"
    """Every probe is attempted, none acknowledged."""
    NOT_RECEIVED = "not received"
    """Every probe is acknowledged, none is received in time."""


def cluster_id(position: int) -> str:
    return f"cluster-{position}"


def broker_ids(position: int) -> tuple[int, ...]:
    """Return three or four ids; numbering differs between clusters."""
    first = FIRST_BROKER[position % len(FIRST_BROKER)]
    return tuple(range(first, first + 3 + position % 2))


@dataclass(frozen=True, slots=True)
class ClusterScript:
    """The events of one cluster, by minute from the start."""

    position: int
    first: int
    last: int
    expected: tuple[frozenset[int], ...]
    probed: tuple[frozenset[int], ...]
    behavior: dict[int, tuple[BrokerBehavior, ...]]
    without_records: frozenset[int]
    exact_p99_us: dict[int, int]
    """The latency of the slowest probes of all brokers in some minutes."""


def build_cluster_script(rng: Random, position: int, minutes: int) -> ClusterScript:
    trouble = FAULT_RATES[position % len(FAULT_RATES)]
    margin = max(1, minutes // 12)
    first, last = (0, minutes) if position == 0 else (rng.randrange(margin), minutes - rng.randrange(margin))
    expected, probed = _membership(rng, position, minutes)
    return ClusterScript(
        position=position,
        first=first,
        last=last,
        expected=expected,
        probed=probed,
        behavior={broker: _draw_behavior(rng, minutes, trouble) for broker in broker_ids(position)},
        without_records=draw_spans(rng, minutes, trouble / 2, longest=12),
        exact_p99_us={
            minute: LATENCY_OBJECTIVE_US + rng.randrange(2)
            for minute in draw_spans(rng, minutes, 1.0, longest=2)
        },
    )


def draw_spans(rng: Random, minutes: int, an_hour: float, longest: int) -> frozenset[int]:
    """Return the minutes of random spans, about ``an_hour`` of them per hour."""
    count = int(an_hour * minutes / 60 + rng.random())
    starts = [(rng.randrange(minutes), rng.randint(1, longest)) for _ in range(count)]
    return frozenset(minute for at, length in starts for minute in range(at, min(at + length, minutes)))


def _draw_behavior(rng: Random, minutes: int, trouble: float) -> tuple[BrokerBehavior, ...]:
    slow = draw_spans(rng, minutes, trouble, longest=8)
    flaky = draw_spans(rng, minutes, trouble, longest=4)
    down = draw_spans(rng, minutes, trouble / 2, longest=6)
    not_received = draw_spans(rng, minutes, trouble / 4, longest=2)

    def behavior(minute: int) -> BrokerBehavior:
        faults = (
            (not_received, BrokerBehavior.NOT_RECEIVED),
            (down, BrokerBehavior.DOWN),
            (flaky, BrokerBehavior.FLAKY),
            (slow, BrokerBehavior.SLOW),
        )
        return next((behavior for span, behavior in faults if minute in span), BrokerBehavior.HEALTHY)

    return tuple(behavior(minute) for minute in range(minutes))


def _membership(
    rng: Random, position: int, minutes: int
) -> tuple[tuple[frozenset[int], ...], tuple[frozenset[int], ...]]:
    """Return the registered and the probed brokers by minute; the last broker joins, the first one leaves.

    A broker that joins may be probed a minute before an agent lists it, or minutes later; a broker that
    leaves may be probed for one more minute.
    """
    brokers = broker_ids(position)
    joins = dict.fromkeys(brokers, 0) | {brokers[-1]: rng.randint(minutes // 10, minutes // 3)}
    leaves = dict.fromkeys(brokers, minutes)
    if position % 2 == 0:
        leaves[brokers[0]] = rng.randint(minutes // 2, minutes - 1)
    delay, overhang = rng.choice([-1, 0, 4]), rng.choice([-3, 0, 1])

    def between(minute: int, after_join: int, after_leave: int) -> frozenset[int]:
        return frozenset(
            broker
            for broker in brokers
            if joins[broker] + after_join * (joins[broker] > 0) <= minute < leaves[broker] + after_leave
        )

    return (
        tuple(between(minute, 0, 0) for minute in range(minutes)),
        tuple(between(minute, delay, overhang) for minute in range(minutes)),
    )
