"""What a failover of a group would cost, and whether it is ready for one."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from fleetgauge_core.fleet.recovery import RecoveryLimits
from fleetgauge_operations.recovery.offsets.lag import lag_of
from fleetgauge_operations.recovery.offsets.mirror_state import Known
from fleetgauge_operations.recovery.plan.sync_decision import Decision, Verdict


class Reason(StrEnum):
    """Why a group is not ready, by the name that scripts see: a verdict's name, or one of these."""

    REPLAY = "replay"
    """It would read more again than the limit."""
    LOSS = "loss"
    """More of a source that would be lost has not got across than the limit."""
    UNKNOWN_LAG = "unknown_lag"
    """Nobody knows what of a source has got across."""
    NOTHING_COMMITTED = "nothing_committed"
    NOT_WRITTEN = "not_written"
    """It could go on, but nothing is committed there, and nobody writes it."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """Of one partition, in records. None: nobody knows.

    ``replay_at_most``: all that lies from where it goes on. ``replay``: of these, how many are consumed if
    both sides hold the same records. ``lost_at_most``: what sources have that fail with the active side.
    """

    decision: Decision
    replay_at_most: int | None
    replay: int | None
    lost_at_most: int | None
    lost_s_at_most: float | None


@dataclass(frozen=True, slots=True)
class GroupForecast:
    """All partitions of a group; ``reasons`` empty: it is ready."""

    group: str
    partitions: tuple[Forecast, ...]
    reasons: tuple[str, ...]

    @property
    def is_ready(self) -> bool:
        return not self.reasons

    @property
    def replay(self) -> int | None:
        return _sum(one.replay for one in self.partitions)

    @property
    def replay_at_most(self) -> int | None:
        return _sum(one.replay_at_most for one in self.partitions)

    @property
    def lost_at_most(self) -> int | None:
        return _sum(one.lost_at_most for one in self.partitions)


def forecast(
    group: str,
    decisions: Sequence[Decision],
    failing: Collection[str],
    limits: RecoveryLimits,
    known: Known,
    now_ms: int,
) -> GroupForecast:
    """``failing``: the clusters that are lost together with the one where the group reads."""
    partitions = tuple(_forecast(one, failing, known, now_ms) for one in decisions)
    found = GroupForecast(group, partitions, ())
    return GroupForecast(group, partitions, tuple(_reasons(found, limits)))


def _forecast(decision: Decision, failing: Collection[str], known: Known, now_ms: int) -> Forecast:
    histories = [known.history(route) for route in decision.into_passive if route.source in failing]
    lags = [lag_of(one, now_ms) if one else None for one in histories]
    seen = [lag for lag in lags if lag]
    lost = _sum(lag.records_at_most if lag else None for lag in lags)
    seconds = [lag.seconds_at_most for lag in seen if lag.seconds_at_most is not None]
    lost_s = max(seconds, default=0.0) if len(seconds) == len(lags) else None
    return Forecast(decision, *_replay(decision), lost, lost_s)


def _replay(decision: Decision) -> tuple[int | None, int | None]:
    """At most, and if both sides hold the same records."""
    position, log = decision.position, decision.passive.log
    if decision.resume is None or log is None:
        return None, None
    at_most = log.end - decision.resume
    return at_most, max(0, at_most - max(0, position.end - position.committed))


def _reasons(found: GroupForecast, limits: RecoveryLimits) -> Iterator[str]:
    if not found.partitions:
        yield Reason.NOTHING_COMMITTED
    against = {one.decision.verdict for one in found.partitions if not one.decision.verdict.is_fine}
    yield from (verdict for verdict in Verdict if verdict in against)
    if any(one.decision.verdict is Verdict.WRITE and one.replay_at_most is None for one in found.partitions):
        yield Reason.NOT_WRITTEN
    if (found.replay or 0) > limits.replay_records:
        yield Reason.REPLAY
    if found.lost_at_most is None:
        yield Reason.UNKNOWN_LAG
    elif found.lost_at_most > limits.lost_records:
        yield Reason.LOSS


def _sum(of: Iterable[int | None]) -> int | None:
    """None where one of them is not known."""
    total = 0
    for one in of:
        if one is None:
            return None
        total += one
    return total
