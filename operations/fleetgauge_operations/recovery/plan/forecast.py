"""Forecast what a failover of a group would replay and lose, and whether the group is ready for one."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from fleetgauge_core.fleet.recovery import RecoveryLimits
from fleetgauge_operations.recovery.offsets.lag import measure_lag
from fleetgauge_operations.recovery.offsets.mirror_state import ReplicationState
from fleetgauge_operations.recovery.plan.sync_decision import SyncDecision, SyncVerdict


class NotReadyReason(StrEnum):
    """Why a group is not ready for a failover, besides the verdicts on its partitions."""

    REPLAY = "replay"
    """It would read more records again than the limit allows."""
    LOSS = "loss"
    """More unreplicated records would be lost with the failing sources than the limit allows."""
    UNKNOWN_LAG = "unknown_lag"
    """The replication lag of a failing source is unknown."""
    NOTHING_COMMITTED = "nothing_committed"
    NOT_WRITTEN = "not_written"
    """Its offset can be translated, but none is committed in the passive cluster, and nothing writes it."""


@dataclass(frozen=True, slots=True)
class PartitionForecast:
    """What a failover would replay and lose of one partition, in records; None if unknown.

    ``replay_at_most`` counts all records from the resume offset on. ``replay`` is how many of them are
    consumed if both clusters hold the same records. ``lost_at_most`` counts the unreplicated records of the
    sources that fail with the active cluster.
    """

    decision: SyncDecision
    replay_at_most: int | None
    replay: int | None
    lost_at_most: int | None
    lost_s_at_most: float | None


@dataclass(frozen=True, slots=True)
class GroupForecast:
    """The forecast of all partitions of a group; it is ready if ``reasons`` is empty."""

    group: str
    partitions: tuple[PartitionForecast, ...]
    reasons: tuple[str, ...]

    @property
    def is_ready(self) -> bool:
        """Whether nothing prevents a failover of the group."""
        return not self.reasons

    @property
    def replay(self) -> int | None:
        """Records read again if both clusters hold the same records."""
        return _sum_known(partition.replay for partition in self.partitions)

    @property
    def replay_at_most(self) -> int | None:
        """Upper bound of the records read again."""
        return _sum_known(partition.replay_at_most for partition in self.partitions)

    @property
    def lost_at_most(self) -> int | None:
        """Upper bound of the records lost with the failing sources."""
        return _sum_known(partition.lost_at_most for partition in self.partitions)


def forecast_group(
    group: str,
    decisions: Sequence[SyncDecision],
    failing: Collection[str],
    limits: RecoveryLimits,
    state: ReplicationState,
    now_ms: int,
) -> GroupForecast:
    """Forecast a failover of a group; ``failing`` are the clusters lost, the active one included."""
    partitions = tuple(_forecast_partition(decision, failing, state, now_ms) for decision in decisions)
    forecast = GroupForecast(group, partitions, ())
    return GroupForecast(group, partitions, tuple(_find_reasons(forecast, limits)))


def _forecast_partition(
    decision: SyncDecision, failing: Collection[str], state: ReplicationState, now_ms: int
) -> PartitionForecast:
    histories = [state.history(route) for route in decision.passive_routes if route.source in failing]
    lags = [measure_lag(history, now_ms) if history else None for history in histories]
    known_lags = [lag for lag in lags if lag]
    lost = _sum_known(lag.records_at_most if lag else None for lag in lags)
    seconds = [lag.seconds_at_most for lag in known_lags if lag.seconds_at_most is not None]
    lost_s = max(seconds, default=0.0) if len(seconds) == len(lags) else None
    return PartitionForecast(decision, *_forecast_replay(decision), lost, lost_s)


def _forecast_replay(decision: SyncDecision) -> tuple[int | None, int | None]:
    """Return the upper bound, and the number if both clusters hold the same records."""
    position, log = decision.position, decision.passive.log
    if decision.resume is None or log is None:
        return None, None
    at_most = log.end - decision.resume
    return at_most, max(0, at_most - max(0, position.end - position.committed))


def _find_reasons(forecast: GroupForecast, limits: RecoveryLimits) -> Iterator[str]:
    if not forecast.partitions:
        yield NotReadyReason.NOTHING_COMMITTED
    verdicts = {partition.decision.verdict for partition in forecast.partitions}
    yield from (verdict for verdict in SyncVerdict if verdict in verdicts and not verdict.is_ok)
    if any(
        partition.decision.verdict is SyncVerdict.WRITE and partition.replay_at_most is None
        for partition in forecast.partitions
    ):
        yield NotReadyReason.NOT_WRITTEN
    if (forecast.replay or 0) > limits.replay_records:
        yield NotReadyReason.REPLAY
    if forecast.lost_at_most is None:
        yield NotReadyReason.UNKNOWN_LAG
    elif forecast.lost_at_most > limits.lost_records:
        yield NotReadyReason.LOSS


def _sum_known(numbers: Iterable[int | None]) -> int | None:
    """Return the sum, or None if one of the numbers is unknown."""
    total = 0
    for number in numbers:
        if number is None:
            return None
        total += number
    return total
