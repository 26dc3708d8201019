"""What one pulse shows of one broker's liveness, before anything is concluded from it."""

from typing import NamedTuple

from fleetgauge_core.contract import BrokerPulse, Leg
from fleetgauge_core.detection.thresholds import Thresholds


class LivenessSigns(NamedTuple):
    """The two independent signs of an unreachable broker, the signs of its return, and their evidence.

    The field names are keys of the evidence in ops/health_events.
    """

    unanswered: bool
    """ApiVersions requests on a cold connection get no answer."""
    leg_silent: bool
    """Leader-leg probes were due and none of them succeeded; if the agent itself cannot probe, the broker is
    fenced."""
    succeeding: bool
    """The leader leg had a success recently."""
    well: bool
    """The broker is in sync and answers ApiVersions, whether it leads or not."""
    answer_age_ms: int | None
    leader_success_age_ms: int | None
    leader_oldest_outstanding_ms: int | None
    leader_failed: int
    fenced: bool
    in_sync: bool
    silence: str | None
    """Why the latest ApiVersions request on a cold connection got no answer."""
    gone_ms: int
    """For how long both signs have held; 0 if they do not hold or if it is unknown."""
    stalled: bool
    """The broker's own counters make no progress, or a log directory is offline."""
    requests_waiting: int | None
    stalled_ms: int | None
    offline_dirs: int | None
    agent_fault: str | None = None
    """The agent's own fault for which its leader leg measures nothing."""
    connection_fault: str | None = None
    """The agent's own fault for which its cold connections get no answer."""

    @property
    def is_undecided(self) -> bool:
        """Whether the agent's own fault hides if the broker is reachable, so that others have to say."""
        if self.is_unreachable:
            return False
        return self.connection_fault is not None or (self.agent_fault is not None and self.unanswered)

    @property
    def is_unreachable(self) -> bool:
        """Whether both signs hold."""
        return self.unanswered and self.leg_silent

    @property
    def is_suspect(self) -> bool:
        """Whether at least one of the two signs holds."""
        return self.unanswered or self.leg_silent

    @property
    def is_in_cluster(self) -> bool:
        """Whether the broker replicates and has heartbeats within its cluster."""
        return self.in_sync and not self.fenced

    def evidence(self) -> dict[str, object]:
        """Return all fields by name."""
        return self._asdict()


def read_liveness_signs(broker: BrokerPulse, limits: Thresholds) -> LivenessSigns:
    """Return the signs in one broker's pulse; probes that are not due count neither way."""
    leader = broker.leg_pulse(Leg.LEADER)
    age = broker.answer_age_ms
    # Without an answer so far, a broker is unanswered as soon as its leader leg is probed.
    unanswered = leader is not None if age is None else age >= limits.unanswered_ms
    unanswered = unanswered and broker.connection_fault is None
    success_age = leader.success_age_ms if leader else None
    succeeding = success_age is not None and success_age < limits.leg_silent_ms
    outstanding_ms = leader.oldest_outstanding_ms if leader else None
    failing = leader is not None and (leader.failed > 0 or (outstanding_ms or 0) >= limits.outstanding_ms)
    agent_fault = leader.agent_fault if leader else None
    leg_silent = failing and not succeeding if agent_fault is None else broker.fenced
    gone_ms = 0
    if unanswered and leg_silent and age is not None and success_age is not None:
        gone_ms = min(age - limits.unanswered_ms, success_age - limits.leg_silent_ms)
    return LivenessSigns(
        unanswered=unanswered,
        leg_silent=leg_silent,
        succeeding=succeeding,
        well=broker.in_sync and not unanswered and broker.connection_fault is None,
        answer_age_ms=age,
        leader_success_age_ms=success_age,
        leader_oldest_outstanding_ms=outstanding_ms,
        leader_failed=leader.failed if leader else 0,
        fenced=broker.fenced,
        in_sync=broker.in_sync,
        silence=broker.silence,
        gone_ms=gone_ms,
        stalled=_is_stalled(broker, leg_silent, limits),
        requests_waiting=broker.requests_waiting,
        stalled_ms=broker.stalled_ms,
        offline_dirs=broker.offline_dirs,
        agent_fault=agent_fault,
        connection_fault=broker.connection_fault,
    )


def _is_stalled(broker: BrokerPulse, leg_silent: bool, limits: Thresholds) -> bool:
    """Return whether storage is stalled; counters of an idle broker make no progress either."""
    if broker.offline_dirs:
        return True
    no_progress = broker.stalled_ms is not None and broker.stalled_ms >= limits.stalled_ms
    return no_progress and (leg_silent or bool(broker.requests_waiting))
