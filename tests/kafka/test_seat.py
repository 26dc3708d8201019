"""Seats by a real group coordinator: one is held, the next takes over, and who was stopped learns of it."""

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka.admin import AdminClient

from fleetgauge_core.fleet import Access
from fleetgauge_core.kafka import (
    Admin,
    Seat,
    Standing,
    Term,
    TopicSpec,
)
from fleetgauge_local.fleet import LocalFleet
from tests.waiting import wait_until

DEADLINE_S = 60
#: Says that it has its seat, then at each line that it is given whether it still has: what it is answered,
#: however long that takes. Between looking after its group and asking it may be late, as on a busy machine.
SITTER = f"""
import sys
from fleetgauge_core.fleet import Access
from fleetgauge_core.kafka import Seat
class Sitter(Seat):
    def _proof(self):
        self._consumer.poll(float(sys.argv[3]))
        return super()._proof()
seat = Sitter(Access(sys.argv[1]), sys.argv[2])
seat.start()
while (term := seat.wait(1)) is None:
    pass
print(term.confirm({DEADLINE_S}), flush=True)
for _ in sys.stdin:
    print(term.confirm({DEADLINE_S}), flush=True)
"""


class Bench:
    """A topic of its own with whoever sits there."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self.topic = f"seat-{uuid.uuid4().hex[:8]}"
        admin = Admin(access)
        admin.start()
        admin.create(TopicSpec(self.topic, partitions=1, replication_factor=1))

    def members(self) -> int:
        """Of the group."""
        client = AdminClient({"bootstrap.servers": self.access.bootstrap})
        return len(client.describe_consumer_groups([self.topic])[self.topic].result().members)

    @contextmanager
    def asked_for(self) -> Iterator[Seat]:
        seat = Seat(self.access, self.topic)
        seat.start()
        try:
            yield seat
        finally:
            seat.stop()

    @contextmanager
    def held_by_another(self, late_s: float = 0) -> Iterator["subprocess.Popen[str]"]:
        """A process of its own, from when it holds the seat on."""
        command = (sys.executable, "-c", SITTER, self.access.bootstrap, self.topic, str(late_s))
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert says(process) == "held"
                yield process
            finally:
                process.kill()


def says(process: "subprocess.Popen[str]") -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def asked(process: "subprocess.Popen[str]") -> str:
    """Whether it still has its seat, as it says itself."""
    assert process.stdin
    process.stdin.write("?\n")
    process.stdin.flush()
    return says(process)


def given(seat: Seat) -> Term:
    wait_until(lambda: seat.wait(0) is not None, DEADLINE_S, "the seat")
    term = seat.wait(0)
    assert term
    return term


@pytest.fixture
def bench(local_fleet: LocalFleet) -> Bench:
    return Bench(Access(local_fleet.bootstrap("telemetry")))


def test_who_joins_takes_nothing_from_who_holds_it(bench: Bench) -> None:
    with bench.held_by_another() as holder, bench.asked_for() as seat:
        wait_until(lambda: bench.members() == 2, DEADLINE_S, "both to have joined")
        wait_until(lambda: asked(holder) == "held", DEADLINE_S, "the group to be made anew")
        assert seat.wait(0) is None


def test_it_is_left_to_the_next_one(bench: Bench) -> None:
    with bench.asked_for() as seat:
        first = given(seat)
        assert first.confirm() is Standing.HELD
    assert first.confirm() is Standing.LOST
    with bench.asked_for() as seat:
        assert given(seat).confirm() is Standing.HELD


def test_of_one_that_is_killed_the_next_has_it(bench: Bench) -> None:
    with bench.held_by_another() as holder, bench.asked_for() as seat:
        holder.kill()
        assert given(seat).confirm() is Standing.HELD


@pytest.mark.parametrize("late_s", [0, 0.15], ids=["asks_at_once", "asks_while_it_joins_again"])
def test_one_that_was_stopped_does_not_believe_that_it_has_it_still(bench: Bench, late_s: float) -> None:
    with bench.held_by_another(late_s) as holder, bench.asked_for() as seat:
        os.kill(holder.pid, signal.SIGSTOP)
        term = given(seat)
        os.kill(holder.pid, signal.SIGCONT)
        assert asked(holder) == "lost"
        wait_until(lambda: term.confirm() is Standing.HELD, DEADLINE_S, "the group to be made anew")
