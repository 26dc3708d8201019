"""What one pulse says of one broker, before anything is concluded from it."""

from dataclasses import asdict, dataclass

from fleetgauge_probes.contract import BrokerPulse, Leg


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Milliseconds, each with its reason."""

    unanswered_ms: int = 3000
    """ApiVersions is asked every second with a second to answer: three in a row are no accident."""
    leg_silent_ms: int = 3000
    """Five probes of 600 ms without a success."""
    outstanding_ms: int = 2000
    """A leader's acknowledgement takes milliseconds; seconds of waiting are silence, not slowness."""
    steady_ms: int = 30_000
    """How long a home that may not lead must be in sync and answering to count as well again."""
    vantage_stale_ms: int = 15_000
    """Three pulses missed: what that vantage said last says nothing now."""


DEFAULT_THRESHOLDS = Thresholds()


@dataclass(frozen=True, slots=True)
class Signs:
    """The two independent signs of a broker that is gone, and the signs of its return."""

    unanswered: bool
    """No ApiVersions answer on a cold connection."""
    leg_silent: bool
    """Its leader leg was due and nothing succeeded."""
    succeeding: bool
    """Its leader leg has a fresh success."""
    well: bool
    """In sync and answering, whether it leads or not."""
    answer_age_ms: int | None
    leader_success_age_ms: int | None
    leader_oldest_outstanding_ms: int | None
    leader_failed: int
    fenced: bool
    silence: str | None
    """What the latest cold question met instead of an answer."""

    def evidence(self) -> dict[str, object]:
        return asdict(self)


def read_signs(broker: BrokerPulse, limits: Thresholds) -> Signs:
    """Judge one broker's pulse. Probes that are not due speak neither way."""
    leader = broker.leg(Leg.LEADER)
    age = broker.answer_age_ms
    # Before it is probed nobody knows; once it is, never having answered is silence.
    unanswered = leader is not None if age is None else age >= limits.unanswered_ms
    success_age = leader.success_age_ms if leader else None
    fresh = success_age is not None and success_age < limits.leg_silent_ms
    waiting = leader.oldest_outstanding_ms if leader else None
    struggling = leader is not None and (leader.failed > 0 or (waiting or 0) >= limits.outstanding_ms)
    return Signs(
        unanswered=unanswered,
        leg_silent=struggling and not fresh,
        succeeding=fresh,
        well=broker.in_sync and not unanswered,
        answer_age_ms=age,
        leader_success_age_ms=success_age,
        leader_oldest_outstanding_ms=waiting,
        leader_failed=leader.failed if leader else 0,
        fenced=broker.fenced,
        silence=broker.silence,
    )
