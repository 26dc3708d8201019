"""Reading of offset syncs from a topic that is deleted, recreated, or loses records."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, cast

import pytest

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.kafka import ConsumerRecord, TopicIdentity
from fleetgauge_core.metadata import OffsetGap, TopicChange, TopicChangeKind
from fleetgauge_operations.recovery import mirror_observer
from fleetgauge_operations.recovery.mirror_observer import MirrorObserver

FLEET = Fleet.model_validate(
    {
        "clusters": [{"id": "north", "bootstrap": "n:1"}, {"id": "all", "bootstrap": "a:1"}],
        "recovery": {"mirrors": [{"source": "north", "destination": "all"}]},
    }
)


@dataclass
class SimulatedLog:
    """The topic of offset syncs; ``topic_id`` is None while it does not exist. Its values are no syncs."""

    topic_id: str | None = "a"
    start: int = 0
    end: int = 0

    def describe_topics(self, names: Collection[str]) -> dict[str, TopicIdentity]:
        return {name: TopicIdentity(self.topic_id, (0,)) for name in names if self.topic_id}

    def read_end_offsets(self, _: object) -> dict[Any, int]:
        return {}


class SimulatedReader:
    """A reader of the log that never leaves its position by itself."""

    def __init__(self, log: SimulatedLog) -> None:
        self._log = log
        self._position = 0

    def start(self) -> None:
        pass

    stop = start

    def read_offset_bounds(self, _: object) -> dict[int, tuple[int, int]]:
        return {0: (self._log.start, self._log.end)}

    def assign_from(self, offsets: Mapping[int, int]) -> None:
        self._position = offsets[0]

    def poll(self, _: float) -> ConsumerRecord | None:
        if not self._log.start <= self._position < self._log.end:
            return None
        self._position += 1
        return ConsumerRecord(0, self._position - 1, b"", b"")


class NothingStored:
    def read_until(self, _: str) -> int | None:
        return None


class Observing:
    """An observer of the log, with the changes that it reported."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.log = SimulatedLog(end=5)
        self.changes: list[TopicChange] = []
        monkeypatch.setattr(mirror_observer, "TopicReader", lambda *_: SimulatedReader(self.log))
        self.observer = MirrorObserver(
            FLEET,
            FLEET.recovery.mirrors[0],
            cast("Any", {"north": self.log, "all": self.log}),
            NothingStored(),
            lambda: 0,
            lambda _, __, change: self.changes.append(change),
        )

    def read_until(self) -> int | None:
        return next(iter(self.observer.observe([]).read_until.values()), None)


@pytest.fixture
def observing(monkeypatch: pytest.MonkeyPatch) -> Observing:
    observing = Observing(monkeypatch)
    assert observing.read_until() == 5
    return observing


def test_syncs_that_expired_unread_are_skipped_and_counted(observing: Observing) -> None:
    observing.log.start, observing.log.end = 8, 12
    assert observing.read_until() == 12
    (change,) = observing.changes
    assert (change.kind, change.lost) == (TopicChangeKind.EXPIRED, (OffsetGap(0, 5, 8),))


def test_a_truncated_topic_is_read_on_from_its_end(observing: Observing) -> None:
    observing.log.end = 3
    assert observing.read_until() == 3
    observing.log.end = 4
    assert observing.read_until() == 4
    assert [change.kind for change in observing.changes] == [TopicChangeKind.TRUNCATED]


def test_a_topic_that_was_recreated_is_read_from_its_beginning(observing: Observing) -> None:
    observing.log.topic_id, observing.log.end = "b", 9
    assert observing.read_until() == 9
    observing.log.topic_id = None
    assert observing.read_until() is None
    observing.log.topic_id, observing.log.end = "c", 2
    assert observing.read_until() == 2
    assert [change.kind for change in observing.changes] == [
        TopicChangeKind.RECREATED,
        TopicChangeKind.DELETED,
        TopicChangeKind.RECREATED,
    ]
