"""Everything known of a fleet's mirrors: of each partition its history, and since when nothing came of it."""

from collections.abc import Iterable
from typing import NamedTuple

from fleetgauge_operations.recovery.offsets.checkpoint import (
    Checkpoint,
    Origin,
    Route,
    TopicIds,
)
from fleetgauge_operations.recovery.offsets.offset_sync_store import History
from fleetgauge_operations.recovery.offsets.replication_runs import Change

#: MirrorMaker holds a sync back until it commits, by default once a minute.
_HELD_BACK_MS = 60_000


class Fact(NamedTuple):
    """What was learned of one partition of one mirror. ``epoch``: as History counts them, with this one."""

    route: Route
    ids: TopicIds
    epoch: int
    checkpoint: Checkpoint


class Known:
    """Facts are taken in the order in which they were learned."""

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        self._histories: dict[Route, History] = {}
        self._kept_up_ms: dict[Route, int] = {}
        self._renewed_ms: dict[Route, int] = {}
        self._looked_ms: dict[tuple[str, str], int] = {}
        self._topics: dict[tuple[str, str], frozenset[str]] = {}
        for fact in facts:
            self.learn(fact.route, fact.ids, fact.checkpoint)

    def __len__(self) -> int:
        return len(self._histories)

    def history(self, route: Route) -> History | None:
        return self._histories.get(route)

    def between(self, source: str, destination: str) -> tuple[History, ...]:
        """Of every partition of that mirror, but of topics that it has no more."""
        topics = self._topics.get((source, destination))
        return tuple(
            history
            for route, history in self._histories.items()
            if (route.source, route.destination) == (source, destination)
            and (topics is None or route.topic in topics)
        )

    def has_topics(self, source: str, destination: str, topics: Iterable[str]) -> None:
        """Which that mirror has now."""
        self._topics[source, destination] = frozenset(topics)

    def ids(self, route: Route) -> TopicIds | None:
        """Which topics it was about when something was learned last."""
        found = self._histories.get(route)
        return found.ids if found else None

    def kept_up_ms(self, route: Route) -> int | None:
        """When the mirror was last seen to copy, or to have nothing left to copy; since 1970."""
        return self._kept_up_ms.get(route)

    def was_made_anew(self, route: Route) -> bool:
        """Whether a topic of that name was another one before, at either end."""
        return route in self._renewed_ms

    def may_be_of_before(self, route: Route, at_ms: int) -> bool:
        """Whether what was told then may be about the topic that had the name before."""
        renewed_ms = self._renewed_ms.get(route)
        return renewed_ms is not None and at_ms < renewed_ms + _HELD_BACK_MS

    def looked_ms(self, source: str, destination: str) -> int | None:
        """When that mirror was looked at: what was not known of it then, was not there."""
        return self._looked_ms.get((source, destination))

    def look(self, source: str, destination: str, at_ms: int) -> None:
        """It is being looked at."""
        self._looked_ms[source, destination] = at_ms

    def keep_up(self, route: Route, at_ms: int) -> None:
        """It was seen to, without anything new."""
        self._kept_up_ms[route] = max(self._kept_up_ms.get(route, 0), at_ms)

    def expire(self, routes: Iterable[Route], log_start: int) -> None:
        """Forget copies that lie before it at the destination, where nobody can read them."""
        for route in routes:
            history = self._histories.get(route)
            if history:
                history.expire(log_start)

    def learn(self, route: Route, ids: TopicIds, checkpoint: Checkpoint) -> Fact | None:
        """None if it says nothing new."""
        history = self._histories.setdefault(route, History(route, ids))
        if history.renew(ids) is Change.MADE_ANEW:
            self._renewed_ms[route] = checkpoint.observed_ms
        change = history.append(checkpoint)
        if checkpoint.origin is not Origin.FENCE:
            self.keep_up(route, checkpoint.observed_ms)
        return None if change is Change.KNOWN else Fact(route, ids, history.epoch, checkpoint)
