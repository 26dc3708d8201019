"""A real cluster, changed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from fleetgauge_probes.fleet import Access, Telemetry
from fleetgauge_probes.kafka import (
    Admin,
    KafkaUnavailableError,
    Place,
    Seat,
    Term,
    ensure_watch_state,
    reassign_all,
)

#: A member that was killed is given up after its session, 6 s.
_SEAT_WITHIN_S = 15
_GROUP = "fleetgauge-mitigate"


class SeatTakenError(Exception):
    """Somebody else is acting."""


@contextmanager
def only_hand(telemetry: Telemetry) -> Iterator[Term]:
    """The proof that nobody else acts anywhere in the fleet. Raises KafkaUnavailableError, SeatTakenError."""
    ensure_watch_state(telemetry)
    seat = Seat(telemetry.access, telemetry.topics.watch_state.name, _GROUP)
    seat.start()
    try:
        term = seat.wait(_SEAT_WITHIN_S)
        if term is None:
            raise SeatTakenError(f"somebody else holds the seat of the group {_GROUP}")
        yield term
    finally:
        seat.stop()


@dataclass(frozen=True, slots=True)
class LiveCluster:
    """By its own administration; see hand.Cluster."""

    access: Access

    def reorder(self, orders: Mapping[Place, Sequence[int]]) -> None:
        if orders and not reassign_all(self.access, orders):
            raise KafkaUnavailableError("a reassignment is under way")

    def elect(self, places: Iterable[Place]) -> None:
        wanted = list(places)
        if wanted:
            admin = Admin(self.access)
            admin.start()
            admin.elect_all_preferred(wanted)
