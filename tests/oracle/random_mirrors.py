"""Random simulations of mirroring, event by event from a seed."""

from collections.abc import Callable
from random import Random

from tests.oracle.mirrors import SIDES, Aggregate, Message, Mirror, MirroringResult, ObservedRow, Source

#: The kinds of events, and the share of simulations in which they occur.
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


def simulate_mirroring(seed: int, unsynced_restarts: bool = False) -> MirroringResult:
    """Return the simulation of a seed; ``unsynced_restarts`` adds events that no offset sync can show."""
    return _Simulator(seed, unsynced_restarts).run()


class _Simulator:
    def __init__(self, seed: int, unsynced_restarts: bool) -> None:
        self.seed, self.unsynced_restarts = seed, unsynced_restarts
        self.chance = chance = Random(seed)
        self.traits = frozenset(trait for trait, share in TRAITS.items() if chance.random() < share)
        self.sync_interval = chance.choice([1, 2, 3, 5, 10, 20])
        self.sources = [
            Source(name, chance.choice([0.1, 1, 1, 5])) for name in "ABCD"[: chance.randint(1, 4)]
        ]
        self.aggregates = [Aggregate(side) for side in SIDES]
        self.mirrors = [
            Mirror(source, aggregate, self.sync_interval)
            for aggregate in self.aggregates
            for source in self.sources
        ]

    def run(self) -> MirroringResult:
        steps = self.chance.choice([20, 60, 150])
        quiet_from = self.chance.randrange(steps) if "idle" in self.traits else steps
        weighted = self.events()
        events, weights = [event for event, _ in weighted], [weight for _, weight in weighted]
        self.begin()
        for step in range(steps):
            if step == quiet_from:
                self.sources[0].rate = 0
            self.chance.choices(events, weights)[0]()
        self.end()
        return self.build_result()

    def events(self) -> list[tuple[Callable[[], None], float]]:
        def only(trait: str, weight: float) -> float:
            return weight if trait in self.traits else 0

        return [
            (self.produce, 30),
            (self.copy, 40),
            (self.send, 10),
            (self.observe, 6),
            (self.read_ends, only("watermarks", 20)),
            (self.kill, only("copied_again", 5)),
            (self.gap, only("gaps", 10)),
            (self.expire, only("gaps", 1)),
            (self.truncate, only("cut", 2)),
            (self.recreate_source, only("source_anew", 2)),
            (self.recreate_destination, only("destination_anew", 2)),
        ]

    def begin(self) -> None:
        """Give most sources records and syncs from the start."""
        for source in self.sources:
            if self.chance.random() < 0.9:
                self._produce(source, self.chance.randint(1, 3))
        for mirror in self.mirrors:
            if self.chance.random() < 0.95:
                mirror.copy()

    def end(self) -> None:
        """Copy and observe nearly everything."""
        for mirror in self.mirrors:
            lags = "lag" in self.traits and mirror.aggregate.name == "passive"
            for _ in range(0 if lags or self.chance.random() < 0.2 else len(mirror.source.records)):
                mirror.copy()
            if "stale" not in self.traits or self.chance.random() < 0.5:
                self._send(mirror)
                mirror.observe()

    def build_result(self) -> MirroringResult:
        active, passive = (tuple(aggregate.log) for aggregate in self.aggregates)
        start = self.chance.randint(0, len(passive)) if "retention" in self.traits else 0
        rows = {
            (mirror.aggregate.name, mirror.source.name): tuple(mirror.observed) for mirror in self.mirrors
        }
        ids = {aggregate.name: f"{aggregate.name}{aggregate.incarnation}" for aggregate in self.aggregates}
        return MirroringResult(
            self.seed,
            self.traits,
            self.sync_interval,
            active,
            passive,
            start,
            rows,
            ids,
            self.never_in_active(),
        )

    def never_in_active(self) -> frozenset[Message]:
        """Return what expired before it was copied to the active, or was copied to a deleted log."""
        active, passive = self.aggregates
        to_come = {
            Message(mirror.source.name, mirror.source.incarnation, at)
            for mirror in self.mirrors
            if mirror.aggregate is active
            for at in range(mirror.at, len(mirror.source.records))
            if mirror.source.records[at]
        }
        held = {message for message in passive.log if message}
        return frozenset(held - set(active.log) - to_come)

    def produce(self) -> None:
        rates = [source.rate for source in self.sources]
        if any(rates):
            self._produce(self.chance.choices(self.sources, rates)[0], self.chance.randint(1, 6))

    def _produce(self, source: Source, count: int) -> None:
        source.records += [True] * count
        source.had_records = True

    def copy(self) -> None:
        lags = "lag" in self.traits
        weights = [2 if lags and mirror.aggregate.name == "passive" else 5 for mirror in self.mirrors]
        mirror = self.chance.choices(self.mirrors, weights)[0]
        for _ in range(self.chance.randint(1, 8)):
            mirror.copy()

    def send(self) -> None:
        self._send(self.chance.choice(self.mirrors))

    def _send(self, mirror: Mirror) -> None:
        mirror.sent += mirror.unsent
        mirror.unsent = []

    def observe(self) -> None:
        self.chance.choice(self.mirrors).observe()

    def read_ends(self) -> None:
        self.chance.choice(self.mirrors).read_ends()

    def kill(self) -> None:
        """Restart a mirror at or before its latest sync, sometimes from the beginning."""
        mirror = self.chance.choice(self.mirrors)
        newest = mirror.newest()
        if newest is None or mirror.incarnation != mirror.source.incarnation:
            return
        back = newest.src if self.chance.random() < 0.1 else self.chance.randint(0, min(20, newest.src))
        first = mirror.source.next_record(newest.src - back)
        if self.unsynced_restarts and self.chance.random() < 0.5:
            first = self.chance.randint(newest.src + 1, max(newest.src + 1, mirror.next_offset))
        elif first is None or first > newest.src:
            return
        is_new = Message(mirror.source.name, mirror.incarnation, first) not in mirror.aggregate.log
        mirror.restart(first)
        mirror.copy()
        if is_new:
            mirror.observe()  # otherwise no observed row shows that the log will contain it

    def gap(self) -> None:
        """Make offsets without a record: transaction markers at either end, or compacted records."""
        source = self.chance.choice(self.sources)
        kind = self.chance.random()
        if kind < 0.4:
            source.records.append(False)
        elif kind < 0.6:
            self.chance.choice(self.aggregates).log.append(None)
        elif source.records:
            at = self.chance.randrange(len(source.records))
            if at != source.last_record():
                source.records[at] = False

    def expire(self) -> None:
        source = self.chance.choice(self.sources)
        expired = self.chance.randint(0, len(source.records))
        source.records[:expired] = [False] * expired

    def truncate(self) -> None:
        """Truncate the end of an aggregate; observers see it at once, mirrors with their next record."""
        aggregate = self.chance.choice(self.aggregates)
        mirrors = [mirror for mirror in self.mirrors if mirror.aggregate is aggregate]
        end = self.chance.randint(0, len(aggregate.log))
        synced = {mirror.source.name: newest.dst for mirror in mirrors if (newest := mirror.newest())}
        outdated = [mirror for mirror in mirrors if synced.get(mirror.source.name, -1) >= end]
        if any(synced[mirror.source.name] < end + len(outdated) for mirror in outdated):
            return  # the next record would be beyond the latest sync, and no row would show the truncation
        for mirror in mirrors:
            mirror.unsent = []
            mirror.observe()
            for end_seen in (len(aggregate.log), end):
                mirror.observed.append(ObservedRow("fence", len(mirror.source.records), end_seen, mirror.ids))
        aggregate.log = aggregate.log[:end]
        aggregate.truncations += 1
        for mirror in outdated:
            if mirror.source.next_record(mirror.at) is None:
                self._produce(mirror.source, 1)
            mirror.has_restarted = True
            mirror.copy()
            mirror.observe()

    def recreate_source(self) -> None:
        source = self.chance.choice(self.sources)
        source.incarnation += 1
        source.records, source.had_records = [], False
        for mirror in self.mirrors:
            if mirror.source is source:
                self._send(mirror)

    def recreate_destination(self) -> None:
        """Recreate an aggregate; its mirrors continue or restart from the beginning."""
        aggregate = self.chance.choice(self.aggregates)
        aggregate.incarnation += 1
        aggregate.log = []
        for mirror in self.mirrors:
            if mirror.aggregate is aggregate:
                new = mirror.incarnation != mirror.source.incarnation
                mirror.restart(0 if new or self.chance.random() < 0.5 else mirror.next_offset)
