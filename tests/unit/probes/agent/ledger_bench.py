"""A ledger to try things on, and what every tally of it must keep to."""

from fleetgauge_core.contract import Leg
from fleetgauge_probes.agent.leader_eligibility import Standing
from fleetgauge_probes.agent.probe_tracker import LegLedger, MinuteTally
from fleetgauge_probes.agent.process_pauses import Stalls

HOME, OTHER = 7, 8
MS = 1_000_000
#: A probe may be sent that many ms late.
LATE = 100


class SaidStalls(Stalls):
    """Those that a test says, and no others."""

    def __init__(self) -> None:
        super().__init__(LATE * MS, 0)
        self.said: list[tuple[int, int]] = []

    def within_ns(self, start_ns: int, end_ns: int) -> int:
        return sum(max(0, min(end, end_ns) - max(start, start_ns)) for start, end in self.said)


class Bench:
    """A ledger spoken to in milliseconds."""

    def __init__(self, leg: Leg, leader: int | None = HOME) -> None:
        self.stalls = SaidStalls()
        self.ledger = LegLedger(leg, HOME, self.stalls)
        self.ledger.open_minute(0)
        if leader is not None:
            self.routed(0, leader)

    def sent(self, sequence: int, due: int = 0, lag: int = 0) -> None:
        self.ledger.open_minute(due // 60_000)
        self.ledger.sent(sequence, due * MS, (due + lag) * MS, due // 60_000)

    def stalled(self, since: int, until: int) -> None:
        self.stalls.said.append((since * MS, until * MS))

    def acked(self, sequence: int, at: int) -> None:
        self.ledger.delivered(sequence, at * MS, None)

    def failed(self, sequence: int, at: int, code: str = "MSG_TIMED_OUT") -> None:
        self.ledger.delivered(sequence, at * MS, code)

    def received(self, sequence: int, at: int) -> None:
        self.ledger.received(sequence, at * MS)

    def routed(self, at: int, leader: int | None, standing: Standing | None = None) -> None:
        judged = standing or (Standing.LEADS if leader == HOME else Standing.AWAY)
        self.ledger.routed(at * MS, leader, judged)

    def tick(self, at: int) -> None:
        self.ledger.tick(at * MS)

    def closable(self, before: int = 1) -> list[int]:
        return list(self.ledger.closable(before))

    def take(self, minute: int = 0) -> MinuteTally:
        return self.ledger.take(minute)


def keeps_the_contract(tally: MinuteTally, leg: Leg) -> None:
    """What every reader of a record relies on."""
    successes = tally.e2e_us if leg is Leg.CLIENT else tally.ack_us
    failures = sum(tally.produce_failures.values()) + sum(tally.consume_failures.values())
    assert tally.attempted == len(successes) + failures
    assert tally.attempted + tally.left_out == len(tally.lag_us)
    assert len(tally.ack_us) == tally.acknowledged <= tally.attempted
    assert len(tally.e2e_us) <= min(tally.acknowledged, tally.received)
    assert tally.received <= tally.attempted
    assert list(tally.ack_us) == sorted(tally.ack_us)
    assert list(tally.e2e_us) == sorted(tally.e2e_us)
    assert all(0 <= us <= 5_000_000 for us in tally.ack_us)
    assert all(0 <= us <= 10_000_000 for us in tally.e2e_us)
    assert tally.lost == sum(tally.consume_failures.values())
    assert "WITHDRAWN" not in tally.produce_failures
    if leg is Leg.LEADER:
        assert tally.e2e_us == ()
        assert tally.received == tally.lost == tally.duplicated == tally.out_of_order == 0
        assert not tally.consume_failures
