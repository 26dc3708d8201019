"""A real cluster, changed."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from tempfile import TemporaryFile

from fleetgauge_core.fleet import Cluster as Configured
from fleetgauge_core.fleet import Telemetry
from fleetgauge_core.kafka import (
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    ClusterAdmin,
    KafkaUnavailableError,
    LeaderElection,
    Leadership,
    TopicPartition,
    ensure_state_topic,
    reorder_replicas,
    write_demotion_mark,
)
from fleetgauge_operations.mitigation.case import Order
from fleetgauge_operations.mitigation.hand import HookError

#: A member that was killed is given up after its session, 6 s.
_SEAT_WITHIN_S = 15
_GROUP = "fleetgauge-mitigate"
#: All replicas of a broker together; whatever is written to must be faster, or it is in sync at once.
_SLOWED_TO_BYTES_S = "10000"
_RESTARTED_WITHIN_S = 300


class SeatTakenError(Exception):
    """Somebody else is acting."""


@contextmanager
def only_hand(telemetry: Telemetry) -> Iterator[Leadership]:
    """The proof that nobody else acts anywhere in the fleet. Raises KafkaUnavailableError, SeatTakenError."""
    ensure_state_topic(telemetry, telemetry.topics.watch_state)
    seat = LeaderElection(telemetry.access, telemetry.topics.watch_state.name, _GROUP)
    seat.start()
    try:
        term = seat.wait_for_leadership(_SEAT_WITHIN_S)
        if term is None:
            raise SeatTakenError(f"somebody else holds the seat of the group {_GROUP}")
        yield term
    finally:
        seat.stop()


@dataclass(frozen=True, slots=True)
class LiveCluster:
    """By its own administration, and by a command of its operators; see hand.ClusterControl."""

    cluster: Configured
    telemetry: Telemetry
    clock: Callable[[], datetime]

    def mark(self, broker_id: int, *, demoted: bool) -> None:
        write_demotion_mark(self.telemetry, self.cluster.id, broker_id, demoted, self.clock())

    def reorder(
        self, orders: Mapping[TopicPartition, Sequence[int]], known: Mapping[TopicPartition, Order]
    ) -> None:
        if orders and not reorder_replicas(self.cluster.access, orders, known):
            raise KafkaUnavailableError("a reassignment is under way")

    def elect(self, places: Iterable[TopicPartition]) -> None:
        wanted = list(places)
        if wanted:
            self._admin().elect_preferred_leaders(wanted)

    def throttle(self, broker_id: int, replicas: Mapping[str, str]) -> None:
        admin = self._admin()
        theirs = admin.read_broker_setting(broker_id, FOLLOWER_THROTTLED_RATE)
        if theirs not in (None, _SLOWED_TO_BYTES_S):
            raise KafkaUnavailableError(f"somebody lets broker {broker_id} follow at {theirs} B/s already")
        # First the rate: a replica that is named without one is not slowed.
        admin.set_broker_setting(broker_id, FOLLOWER_THROTTLED_RATE, _SLOWED_TO_BYTES_S)
        for topic, value in replicas.items():
            admin.set_topic_setting(topic, FOLLOWER_THROTTLED_REPLICAS, value)

    def release(self, broker_id: int, replicas: Mapping[str, str], *, registered: bool) -> None:
        admin = self._admin()
        for topic, value in replicas.items():
            if (
                admin.describe_topic(topic)
                and admin.read_topic_setting(topic, FOLLOWER_THROTTLED_REPLICAS) == value
            ):
                admin.set_topic_setting(topic, FOLLOWER_THROTTLED_REPLICAS, None)
        # Nobody can be asked of one that is gone; without a replica that is named its rate slows nothing.
        if registered and admin.read_broker_setting(broker_id, FOLLOWER_THROTTLED_RATE) == _SLOWED_TO_BYTES_S:
            admin.set_broker_setting(broker_id, FOLLOWER_THROTTLED_RATE, None)

    def restart(self, broker_id: int) -> None:
        command = [one.replace("{broker}", str(broker_id)) for one in self.cluster.restart]
        # A file and not a pipe: a broker that the command leaves running would keep a pipe open.
        with TemporaryFile() as said:
            try:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
                code = process.wait(_RESTARTED_WITHIN_S)
            except OSError as error:
                raise HookError(f"{command[0]}: {error}") from error
            except subprocess.TimeoutExpired as error:
                # With all that it started, else that would go on after it is said to have failed.
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise HookError(f"{command[0]} was ended after {_RESTARTED_WITHIN_S} s") from error
            said.seek(0)
            lines = said.read().decode(errors="replace").strip().splitlines()
        if code:
            raise HookError(f"{command[0]} ended with {code}: {lines[-1] if lines else 'no word'}")

    def _admin(self) -> ClusterAdmin:
        admin = ClusterAdmin(self.cluster.access)
        admin.start()
        return admin
