"""Everything known of a fleet's mirrors: of each partition its history, and since when nothing came of it."""

from collections.abc import Iterable
from typing import NamedTuple

from fleetgauge_operations.recovery.checkpoint import Checkpoint, Origin, Route, TopicIds
from fleetgauge_operations.recovery.copies import Change
from fleetgauge_operations.recovery.history import History


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
        self._made_anew: set[Route] = set()
        self._seen: set[tuple[str, str]] = set()
        for fact in facts:
            self.learn(fact.route, fact.ids, fact.checkpoint)

    def __len__(self) -> int:
        return len(self._histories)

    def history(self, route: Route) -> History | None:
        return self._histories.get(route)

    def ids(self, route: Route) -> TopicIds | None:
        """Which topics it was about when something was learned last."""
        found = self._histories.get(route)
        return found.ids if found else None

    def kept_up_ms(self, route: Route) -> int | None:
        """When the mirror was last seen to copy, or to have nothing left to copy; since 1970."""
        return self._kept_up_ms.get(route)

    def was_made_anew(self, route: Route) -> bool:
        """Whether a topic of that name was another one before, at either end."""
        return route in self._made_anew

    def has_seen(self, source: str, destination: str) -> bool:
        """Whether that mirror was ever looked at: of what is not known of it, there is nothing."""
        return (source, destination) in self._seen

    def see(self, source: str, destination: str) -> None:
        self._seen.add((source, destination))

    def learn(self, route: Route, ids: TopicIds, checkpoint: Checkpoint) -> Fact | None:
        """None if it says nothing new."""
        self.see(route.source, route.destination)
        history = self._histories.setdefault(route, History(route, ids))
        if history.renew(ids) is Change.MADE_ANEW:
            self._made_anew.add(route)
        change = history.append(checkpoint)
        if checkpoint.origin is not Origin.FENCE:
            before_ms = self._kept_up_ms.get(route, 0)
            self._kept_up_ms[route] = max(before_ms, checkpoint.observed_ms)
        return None if change is Change.KNOWN else Fact(route, ids, history.epoch, checkpoint)
