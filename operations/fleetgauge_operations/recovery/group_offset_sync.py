"""Groups of one cluster in another: where they are, where they are to be, and putting them there."""

import logging
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from fleetgauge_core.fleet import Fleet, RecoveredGroups
from fleetgauge_core.kafka import (
    Committed,
    Extents,
    GroupHasMembersError,
    Groups,
    Place,
)
from fleetgauge_operations.recovery.mirror_observer import CLIENT_ID
from fleetgauge_operations.recovery.offsets.checkpoint import Log
from fleetgauge_operations.recovery.offsets.mirror_state import Known
from fleetgauge_operations.recovery.plan.sync_decision import (
    Decision,
    Pair,
    Passive,
    Position,
    Verdict,
    decided,
    topic_there,
)

_log = logging.getLogger("fleetgauge.recover")

#: What is written beside an offset: of which cluster's offset it is the answer.
_NOTE = re.compile(r"fleetgauge (?P<active>\S+) (?P<offset>\d+)")


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """All partitions of one group. ``wrote``: whether what was decided has been done."""

    group: str
    pair: Pair
    decisions: tuple[Decision, ...]
    wrote: bool = False

    @property
    def is_fine(self) -> bool:
        return all(one.verdict.is_fine for one in self.decisions)

    @property
    def unwritten(self) -> "GroupPlan":
        """Where it goes on if nothing of this is written: from what is committed there."""
        return replace(self, decisions=tuple(map(_unwritten, self.decisions)))


def _unwritten(one: Decision) -> Decision:
    """What is committed there may be further on than where it may be, or lie where there is no record."""
    there, log = one.passive.committed, one.passive.log
    if one.verdict is not Verdict.WRITE or one.resume is None:
        return one
    if there is None or (log is not None and there < log.start):
        return replace(one, resume=None)
    return replace(one, resume=there, verdict=Verdict.BACKWARDS if there > one.resume else one.verdict)


class Mover:
    """The groups of one entry of fleet.yaml. All raise KafkaUnavailableError."""

    def __init__(self, fleet: Fleet, wanted: RecoveredGroups, now_ms: Callable[[], int]) -> None:
        self._recovery = fleet.recovery
        self._wanted = re.compile(wanted.groups)
        self.pair = Pair(wanted.active, wanted.passive)
        active, passive = (fleet.cluster(one).access for one in (wanted.active, wanted.passive))
        self._active = Groups(active, CLIENT_ID)
        self._passive = Groups(passive, CLIENT_ID)
        self._active_logs, self._logs = (Extents(one, CLIENT_ID) for one in (active, passive))
        self._now_ms = now_ms

    def start(self) -> None:
        """Raises KafkaUnavailableError where secrets cannot be read."""
        for one in (self._active, self._passive, self._active_logs, self._logs):
            one.start()

    def stop(self) -> None:
        for one in (self._active, self._passive):
            one.stop()

    def plans(self, known: Known, only: str | None = None) -> Iterator[GroupPlan]:
        """What is to be written of each group that has committed anything, or of one, as it is asked for.

        Changes nothing.
        """
        taken = (name for name in self._active.names() if self._wanted.fullmatch(name))
        wanted = [name for name in taken if only in (None, name)]
        committed = self._active.committed(wanted)
        for name in sorted({*wanted} - {*committed}):
            _log.warning("%s: there is no right to ask for it in %s", name, self.pair.active)
        names = sorted(name for name, places in committed.items() if places)
        there, connected = self._passive.committed(names), self._passive.connected(names)
        for name in names:
            decisions = self._decided(known, committed[name], there.get(name, {}), name in connected)
            if name not in there:
                _log.warning("%s: there is no right to ask for it in %s", name, self.pair.passive)
                decisions = _instead(decisions, Verdict.FAILED)
            for one in decisions:
                if one.passive.log:
                    known.expire(one.into_passive, one.passive.log.start)
            yield GroupPlan(name, self.pair, decisions)

    def write(self, plan: GroupPlan) -> GroupPlan:
        """Commit what the plan says is to be written, and read it back."""
        wanted = {
            Place(one.passive.topic, one.passive.partition): Committed(one.resume, self._note(one.position))
            for one in plan.decisions
            if one.verdict is Verdict.WRITE and one.resume is not None
        }
        if not wanted:
            return plan
        try:
            refused = self._passive.commit(plan.group, wanted)
        except GroupHasMembersError:
            return replace(plan, decisions=_instead(plan.decisions, Verdict.CONNECTED))
        for place, why in refused.items():
            _log.warning("%s: %s/%d: not written: %s", plan.group, place.topic, place.partition, why)
        found = self._passive.committed([plan.group]).get(plan.group, {})
        missing = {place for place, one in wanted.items() if found.get(place) != one}
        decisions = tuple(
            replace(one, verdict=Verdict.FAILED)
            if Place(one.passive.topic, one.passive.partition) in missing
            else one
            for one in plan.decisions
        )
        return replace(plan, decisions=decisions, wrote=True)

    def _decided(
        self,
        known: Known,
        committed: Mapping[Place, Committed],
        there: Mapping[Place, Committed],
        connected: bool,
    ) -> tuple[Decision, ...]:
        ends = self._active_logs.ends(self._active_logs.led(committed))
        logs = self._extents(committed)
        found = []
        for place, one in sorted(committed.items()):
            copy = Place(topic_there(self._recovery, self.pair, place.topic) or place.topic, place.partition)
            before = there.get(copy)
            passive = Passive(
                topic=copy.topic,
                partition=copy.partition,
                log=logs.get(place),
                connected=connected,
                committed=before.offset if before else None,
                of=self._position_of(before.metadata) if before else None,
            )
            position = Position(place.topic, place.partition, one.offset, ends.get(place, one.offset))
            found.append(decided(position, passive, self.pair, self._recovery, known, self._now_ms()))
        return tuple(found)

    def _extents(self, places: Collection[Place]) -> Mapping[Place, Log]:
        """By the active cluster's partition, the log of its copy, where there is one."""
        copies = {
            place: Place(topic, place.partition)
            for place in places
            if (topic := topic_there(self._recovery, self.pair, place.topic))
        }
        wanted = self._logs.led(set(copies.values()))
        starts, ends = self._logs.starts(wanted), self._logs.ends(wanted)
        return {
            place: Log(starts[copy], ends[copy])
            for place, copy in copies.items()
            if copy in starts and copy in ends
        }

    def _note(self, position: Position) -> str:
        return f"fleetgauge {self.pair.active} {position.committed}"

    def _position_of(self, note: str) -> int | None:
        found = _NOTE.fullmatch(note)
        return int(found["offset"]) if found and found["active"] == self.pair.active else None


def _instead(decisions: Sequence[Decision], verdict: Verdict) -> tuple[Decision, ...]:
    """Of those that were to be written."""
    return tuple(replace(one, verdict=verdict) if one.verdict is Verdict.WRITE else one for one in decisions)
