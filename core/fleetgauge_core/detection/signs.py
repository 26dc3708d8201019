"""What one pulse says of one broker, before anything is concluded from it."""

from typing import NamedTuple

from fleetgauge_core.contract import BrokerPulse, Leg
from fleetgauge_core.detection.thresholds import Thresholds


class Signs(NamedTuple):
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
    in_sync: bool
    silence: str | None
    """What the latest cold question met instead of an answer."""
    gone_ms: int
    """For how long both signs have held; 0 where that is not known, or they do not."""
    stalled: bool
    """By its own counters it gets on with nothing, or has given up a log directory."""
    requests_waiting: int | None
    stalled_ms: int | None
    offline_dirs: int | None

    @property
    def gone(self) -> bool:
        return self.unanswered and self.leg_silent

    @property
    def doubtful(self) -> bool:
        return self.unanswered or self.leg_silent

    @property
    def in_cluster(self) -> bool:
        """The cluster itself hears from it."""
        return self.in_sync and not self.fenced

    def evidence(self) -> dict[str, object]:
        return self._asdict()


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
    leg_silent = struggling and not fresh
    gone_ms = 0
    if unanswered and leg_silent and age is not None and success_age is not None:
        gone_ms = min(age - limits.unanswered_ms, success_age - limits.leg_silent_ms)
    return Signs(
        unanswered=unanswered,
        leg_silent=leg_silent,
        succeeding=fresh,
        well=broker.in_sync and not unanswered,
        answer_age_ms=age,
        leader_success_age_ms=success_age,
        leader_oldest_outstanding_ms=waiting,
        leader_failed=leader.failed if leader else 0,
        fenced=broker.fenced,
        in_sync=broker.in_sync,
        silence=broker.silence,
        gone_ms=gone_ms,
        stalled=_is_stalled(broker, leg_silent, limits),
        requests_waiting=broker.requests_waiting,
        stalled_ms=broker.stalled_ms,
        offline_dirs=broker.offline_dirs,
    )


def _is_stalled(broker: BrokerPulse, leg_silent: bool, limits: Thresholds) -> bool:
    """Whoever has no work stands still as well."""
    if broker.offline_dirs:
        return True
    stands = broker.stalled_ms is not None and broker.stalled_ms >= limits.stalled_ms
    return stands and (leg_silent or bool(broker.requests_waiting))
