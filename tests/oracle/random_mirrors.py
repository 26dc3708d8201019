"""Worlds of mirrors from a seed, event by event."""

from collections.abc import Callable
from random import Random

from tests.oracle.mirrors import SIDES, Aggregate, Message, Mirror, Source, Told, World

#: What may happen in a world, and in how many of them it does.
TRAITS = {
    "copied_again": 0.3,
    "gaps": 0.3,
    "idle": 0.35,
    "lag": 0.4,
    "watermarks": 0.6,
    "retention": 0.2,
    "cut": 0.1,
    "source_anew": 0.1,
    "destination_anew": 0.1,
    "stale": 0.3,
}


def random_world(seed: int, untold: bool = False) -> World:
    """The world of that seed. ``untold``: with what no checkpoint can show."""
    return _Maker(seed, untold).made()


class _Maker:
    def __init__(self, seed: int, untold: bool) -> None:
        self.seed, self.untold = seed, untold
        self.chance = chance = Random(seed)
        self.traits = frozenset(one for one, share in TRAITS.items() if chance.random() < share)
        self.every = chance.choice([1, 2, 3, 5, 10, 20])
        self.sources = [Source(one, chance.choice([0.1, 1, 1, 5])) for one in "ABCD"[: chance.randint(1, 4)]]
        self.aggregates = [Aggregate(side) for side in SIDES]
        self.mirrors = [Mirror(one, where, self.every) for where in self.aggregates for one in self.sources]

    def made(self) -> World:
        steps = self.chance.choice([20, 60, 150])
        quiet_from = self.chance.randrange(steps) if "idle" in self.traits else steps
        weighted = self.events()
        events, weights = [one for one, _ in weighted], [weight for _, weight in weighted]
        self.begin()
        for step in range(steps):
            if step == quiet_from:
                self.sources[0].pace = 0
            self.chance.choices(events, weights)[0]()
        self.end()
        return self.world()

    def events(self) -> list[tuple[Callable[[], None], float]]:
        def only(trait: str, weight: float) -> float:
            return weight if trait in self.traits else 0

        return [
            (self.produce, 30),
            (self.copy, 40),
            (self.send, 10),
            (self.observe, 6),
            (self.look, only("watermarks", 20)),
            (self.kill, only("copied_again", 5)),
            (self.gap, only("gaps", 10)),
            (self.expire, only("gaps", 1)),
            (self.cut, only("cut", 2)),
            (self.source_anew, only("source_anew", 2)),
            (self.destination_anew, only("destination_anew", 2)),
        ]

    def begin(self) -> None:
        """Of most sources something is known from the beginning."""
        for one in self.sources:
            if self.chance.random() < 0.9:
                self._produce(one, self.chance.randint(1, 3))
        for mirror in self.mirrors:
            if self.chance.random() < 0.95:
                mirror.copy()

    def end(self) -> None:
        """Nearly all has arrived, and nearly all is known of it."""
        for one in self.mirrors:
            lags = "lag" in self.traits and one.aggregate.name == "passive"
            for _ in range(0 if lags or self.chance.random() < 0.2 else len(one.source.records)):
                one.copy()
            if "stale" not in self.traits or self.chance.random() < 0.5:
                self._send(one)
                one.observe()

    def world(self) -> World:
        active, passive = (tuple(one.log) for one in self.aggregates)
        start = self.chance.randint(0, len(passive)) if "retention" in self.traits else 0
        rows = {(one.aggregate.name, one.source.name): tuple(one.observed) for one in self.mirrors}
        ids = {one.name: f"{one.name}{one.incarnation}" for one in self.aggregates}
        return World(self.seed, self.traits, self.every, active, passive, start, rows, ids, self.never())

    def never(self) -> frozenset[Message]:
        """What expired before it was copied to the active, or was copied to a log that is no more."""
        active, passive = self.aggregates
        to_come = {
            Message(one.source.name, one.source.incarnation, at)
            for one in self.mirrors
            if one.aggregate is active
            for at in range(one.at, len(one.source.records))
            if one.source.records[at]
        }
        held = {one for one in passive.log if one}
        return frozenset(held - set(active.log) - to_come)

    def produce(self) -> None:
        paces = [one.pace for one in self.sources]
        if any(paces):
            self._produce(self.chance.choices(self.sources, paces)[0], self.chance.randint(1, 6))

    def _produce(self, source: Source, count: int) -> None:
        source.records += [True] * count
        source.ever = True

    def copy(self) -> None:
        lags = "lag" in self.traits
        paces = [2 if lags and one.aggregate.name == "passive" else 5 for one in self.mirrors]
        mirror = self.chance.choices(self.mirrors, paces)[0]
        for _ in range(self.chance.randint(1, 8)):
            mirror.copy()

    def send(self) -> None:
        self._send(self.chance.choice(self.mirrors))

    def _send(self, mirror: Mirror) -> None:
        mirror.sent += mirror.unsent
        mirror.unsent = []

    def observe(self) -> None:
        self.chance.choice(self.mirrors).observe()

    def look(self) -> None:
        self.chance.choice(self.mirrors).look()

    def kill(self) -> None:
        """It begins again at or before what it told of last; now and then with all there is."""
        mirror = self.chance.choice(self.mirrors)
        newest = mirror.newest()
        if newest is None or mirror.incarnation != mirror.source.incarnation:
            return
        back = newest.src if self.chance.random() < 0.1 else self.chance.randint(0, min(20, newest.src))
        first = mirror.source.next_record(newest.src - back)
        if self.untold and self.chance.random() < 0.5:
            first = self.chance.randint(newest.src + 1, max(newest.src + 1, mirror.next_offset))
        elif first is None or first > newest.src:
            return
        brings = Message(mirror.source.name, mirror.incarnation, first) not in mirror.aggregate.log
        mirror.restart(first)
        mirror.copy()
        if brings:
            mirror.observe()  # until then nobody knows that the log will have it

    def gap(self) -> None:
        """Offsets without a record: of transactions, at either end, or compacted away."""
        source = self.chance.choice(self.sources)
        what = self.chance.random()
        if what < 0.4:
            source.records.append(False)
        elif what < 0.6:
            self.chance.choice(self.aggregates).log.append(None)
        elif source.records:
            at = self.chance.randrange(len(source.records))
            if at != source.last_record():
                source.records[at] = False

    def expire(self) -> None:
        source = self.chance.choice(self.sources)
        expired = self.chance.randint(0, len(source.records))
        source.records[:expired] = [False] * expired

    def cut(self) -> None:
        """An aggregate loses its end. Who always looks sees that, and mirrors with their next record."""
        aggregate = self.chance.choice(self.aggregates)
        mirrors = [one for one in self.mirrors if one.aggregate is aggregate]
        end = self.chance.randint(0, len(aggregate.log))
        told = {one.source.name: newest.dst for one in mirrors if (newest := one.newest())}
        wrong = [one for one in mirrors if told.get(one.source.name, -1) >= end]
        if any(told[one.source.name] < end + len(wrong) for one in wrong):
            return  # the next record would lie beyond what was told, and nothing would show
        for one in mirrors:
            one.unsent = []
            one.observe()
            for looked in (len(aggregate.log), end):
                one.observed.append(Told("fence", len(one.source.records), looked, one.ids))
        aggregate.log = aggregate.log[:end]
        aggregate.cuts += 1
        for one in wrong:
            if one.source.next_record(one.at) is None:
                self._produce(one.source, 1)
            one.begins = True
            one.copy()
            one.observe()

    def source_anew(self) -> None:
        source = self.chance.choice(self.sources)
        source.incarnation += 1
        source.records, source.ever = [], False
        for one in self.mirrors:
            if one.source is source:
                self._send(one)

    def destination_anew(self) -> None:
        """Its mirrors go on, or begin again with all there is."""
        aggregate = self.chance.choice(self.aggregates)
        aggregate.incarnation += 1
        aggregate.log = []
        for one in self.mirrors:
            if one.aggregate is aggregate:
                new = one.incarnation != one.source.incarnation
                one.restart(0 if new or self.chance.random() < 0.5 else one.next_offset)
