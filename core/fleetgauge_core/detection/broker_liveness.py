"""Liveness of a broker: two agreeing signs raise an alert, and the broker's own success clears it.

A broker is SUSPECT on the first of two signs (unanswered ApiVersions, silent leader leg) and BROKER_DOWN when
most of the vantages with a fresh observation see both; while the whole cluster is down, only the cluster is
reported. It is STORAGE_STALLED if its own counters make no progress, and NETWORK_UNAVAILABLE if it still
replicates within its cluster. The alert clears on a leader-leg success that was sent after the alert opened,
or, if the broker cannot lead, once it has been in sync and answering for a while; the alert of a flapping
broker clears only after a calm period.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from fleetgauge_core.detection.finding import HealthState
from fleetgauge_core.detection.liveness_signs import LivenessSigns
from fleetgauge_core.detection.thresholds import Thresholds

#: As many as make a broker flapping.
_ALERT_TIMES_KEPT = 3


class VantageObservation(NamedTuple):
    """The latest observation of one broker by one vantage, and since when its signs have held."""

    at: datetime
    signs: LivenessSigns
    well_since: datetime | None
    unreachable_since: datetime | None
    reachable_since: datetime | None


@dataclass(frozen=True, slots=True)
class BrokerLiveness:
    """A broker's state, since when it is suspect or alerted, and each vantage's latest observation."""

    state: HealthState = HealthState.HEALTHY
    since: datetime | None = None
    alert_times: tuple[datetime, ...] = ()
    """When its latest alerts opened."""
    observations: Mapping[str, VantageObservation] = field(default_factory=dict)
    """By vantage."""

    def record_signs(
        self, vantage: str, at: datetime, signs: LivenessSigns, limits: Thresholds
    ) -> "BrokerLiveness":
        """Return the liveness with a vantage's new observation; the state is not evaluated."""
        before = self.observations.get(vantage)
        if before and not limits.is_fresh(before.at, at):
            before = None
        unreachable_at = _unreachable_at(signs, before, at)
        observation = VantageObservation(
            at,
            signs,
            _since(signs.well, before.well_since if before else None, at),
            _since(signs.is_unreachable, before.unreachable_since if before else None, unreachable_at),
            _since(
                not (signs.is_unreachable or signs.is_undecided),
                before.reachable_since if before else None,
                at,
            ),
        )
        observations = {**self.observations, vantage: observation}
        return BrokerLiveness(self.state, self.since, self.alert_times, observations)

    def evaluate(
        self,
        observations: Mapping[str, VantageObservation],
        now: datetime,
        limits: Thresholds,
        *,
        may_alert: bool,
    ) -> "BrokerLiveness":
        """Return the liveness with the state that follows from these observations.

        ``may_alert``: whether an alert may open, as it may not while a whole cluster returns.
        """
        state = self._next_state(list(observations.values()), now, limits, may_alert)
        if state is self.state:
            return self
        if self.state.is_alert and state.is_alert:
            return replace(self, state=state)
        return replace(self.with_alert_at(now) if state.is_alert else self, state=state, since=now)

    def with_alert_at(self, at: datetime) -> "BrokerLiveness":
        """Return the liveness with one more alert that opened."""
        return replace(self, alert_times=(*self.alert_times, at)[-_ALERT_TIMES_KEPT:])

    def drop_timestamps(self, now: datetime) -> "BrokerLiveness":
        """Return the state without observations and past alerts, for a clock that was set back to ``now``."""
        return BrokerLiveness(self.state, min(self.since, now) if self.since else None)

    def fresh_observations(self, now: datetime, limits: Thresholds) -> dict[str, VantageObservation]:
        """Return the observations that still count, by vantage."""
        return {
            vantage: observation
            for vantage, observation in self.observations.items()
            if limits.is_fresh(observation.at, now)
        }

    def evidence(self) -> dict[str, object]:
        """Return the signs of each vantage's latest observation, by vantage."""
        observations = sorted(self.observations.items())
        return {vantage: observation.signs.evidence() for vantage, observation in observations}

    def _next_state(
        self, fresh: Sequence[VantageObservation], now: datetime, limits: Thresholds, may_alert: bool
    ) -> HealthState:
        unreachable = is_unreachable(fresh)
        stalled = is_majority(observation.signs.stalled for observation in fresh)
        if self.state.is_alert:
            since = self.since or now
            has_returned = any(_has_returned(observation, since, now, limits) for observation in fresh)
            has_fault = any(
                observation.signs.is_unreachable or observation.signs.stalled for observation in fresh
            )
            if has_returned and not has_fault and self._is_calm(fresh, now, limits):
                return HealthState.HEALTHY
            return self._alert_state(fresh, now, limits) if unreachable or stalled else self.state
        if (unreachable or stalled) and may_alert:
            return HealthState.STORAGE_STALLED if stalled else HealthState.BROKER_DOWN
        suspect = is_majority(
            observation.signs.is_suspect for observation in fresh if not _sees_nothing(observation)
        )
        return HealthState.SUSPECT if suspect else HealthState.HEALTHY

    def _is_calm(self, fresh: Sequence[VantageObservation], now: datetime, limits: Thresholds) -> bool:
        if sum(now - alert_at < limits.flaps_within for alert_at in self.alert_times) < limits.flaps:
            return True
        return all(_has_lasted(observation.well_since, limits.calm, now) for observation in fresh)

    def _alert_state(
        self, fresh: Sequence[VantageObservation], now: datetime, limits: Thresholds
    ) -> HealthState:
        """Return the kind of an open alert; the cluster fences a broker that hangs within seconds."""
        if is_majority(observation.signs.stalled for observation in fresh):
            return HealthState.STORAGE_STALLED
        if self.state is HealthState.STORAGE_STALLED:
            # The broker's metrics exporter may have stopped as well.
            return self.state
        if not is_majority(observation.signs.is_in_cluster for observation in fresh):
            return HealthState.BROKER_DOWN
        cut_off = is_majority(
            _has_lasted(observation.unreachable_since, limits.cut_off, now) for observation in fresh
        )
        return HealthState.NETWORK_UNAVAILABLE if cut_off else self.state


def is_unreachable(observations: Iterable[VantageObservation]) -> bool:
    """Return whether most of the vantages that can tell do not reach the broker."""
    return is_majority(
        observation.signs.is_unreachable for observation in observations if not observation.signs.is_undecided
    )


def _sees_nothing(observation: VantageObservation) -> bool:
    """Return whether neither the leader leg nor cold connections show anything of the broker."""
    signs = observation.signs
    return signs.agent_fault is not None and signs.connection_fault is not None


def is_majority(votes: Iterable[bool]) -> bool:
    """Return whether more than half of the votes are true; false without votes."""
    balance = 0
    for vote in votes:
        balance += 1 if vote else -1
    return balance > 0


def _since(holds: bool, before: datetime | None, now: datetime) -> datetime | None:
    """Return since when a sign has held without interruption, None if it does not hold."""
    return (before or now) if holds else None


def _unreachable_at(signs: LivenessSigns, before: VantageObservation | None, at: datetime) -> datetime:
    """Return when both signs began to hold, by the ages in the pulse; not before the previous pulse."""
    if before is None or not signs.gone_ms:
        return at
    return max(before.at, at - timedelta(milliseconds=signs.gone_ms))


def _has_lasted(since: datetime | None, duration: timedelta, now: datetime) -> bool:
    return since is not None and now - since >= duration


def _has_returned(
    observation: VantageObservation, alert_since: datetime, now: datetime, limits: Thresholds
) -> bool:
    age_ms = observation.signs.leader_success_age_ms
    has_succeeded = age_ms is not None and observation.at - timedelta(milliseconds=age_ms) > alert_since
    return has_succeeded or _has_lasted(observation.well_since, limits.steady, now)
