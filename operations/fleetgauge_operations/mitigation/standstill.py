"""That nothing can be put on record, so that nothing is done, is told a person, whom else cases would tell.

What is known of it dies with its process: who starts next and finds the same tells it as the same incident.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from fleetgauge_operations.notify.notification import Bulletin

#: A receiver that is out stays so for a while, and whoever is sick waits meanwhile.
_PAUSE = timedelta(minutes=5)
#: That it is over; then it has passed.
_TOLD_WITHIN = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class _Ticket:
    """``why``: None once it is over. ``told``: by host, who knows how it stands since ``at``."""

    why: str | None
    at: datetime
    told: tuple[str, ...] = ()
    again: datetime | None = None
    """Not before then."""

    def is_known_to(self, everybody: Collection[str]) -> bool:
        return set(everybody) <= set(self.told)


class StandStill:
    """By cluster, from when it is found until everybody knows that it is over."""

    def __init__(self) -> None:
        self._tickets: dict[str, _Ticket] = {}

    def __contains__(self, cluster_id: str) -> bool:
        return cluster_id in self._tickets

    def found(self, cluster_id: str, why: str, at: datetime) -> None:
        known = self._tickets.get(cluster_id)
        if known is None or known.why is None:
            self._tickets[cluster_id] = _Ticket(why, at)

    def over(self, cluster_id: str, at: datetime) -> None:
        known = self._tickets.get(cluster_id)
        if known and known.why:
            self._tickets[cluster_id] = _Ticket(None, at)

    def tell(
        self,
        everybody: Collection[str],
        tell: Callable[[Bulletin, Collection[str]], Sequence[str]],
        now: datetime,
    ) -> None:
        """Those of ``everybody`` who do not know yet; ``tell`` says whom it reached."""
        for cluster_id, one in list(self._tickets.items()):
            if not one.is_known_to(everybody) and (one.again is None or now >= one.again):
                told = tell(_bulletin(cluster_id, one), one.told)
                one = replace(one, told=(*one.told, *told), again=now + _PAUSE)
                self._tickets[cluster_id] = one
            if one.why is None and (one.is_known_to(everybody) or now - one.at > _TOLD_WITHIN):
                del self._tickets[cluster_id]


def _bulletin(cluster_id: str, one: _Ticket) -> Bulletin:
    still = f"{cluster_id}: nothing is done about its brokers, since nothing can be put on record"
    return Bulletin(
        bulletin_id=f"mitigate/{cluster_id}/record/{one.at.isoformat()}",
        incident=f"mitigate/{cluster_id}/record",
        opens=one.why is not None,
        severity="ticket",
        kind="MITIGATION_STANDS_STILL",
        cluster_id=cluster_id,
        at=one.at,
        summary=still if one.why else f"{cluster_id}: what is done can be put on record again",
        words=(one.why,) if one.why else (),
        byline=f"{one.at:%Y-%m-%d %H:%M:%S} UTC, fleetgauge mitigate run",
        alert="MITIGATION",
        labels={"action": "any"},
    )
