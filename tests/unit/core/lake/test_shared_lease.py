"""A lease by numbered objects: at no moment may two processes commit."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.lake.shared_lease import (
    DURATION_S,
    LeaseHolder,
    LeaseLostError,
    LeaseTakenError,
    NoConditionalWritesError,
    SharedLease,
    StoreUnavailableError,
)

NOON = datetime(2026, 4, 1, 12, tzinfo=UTC)
ANN = LeaseHolder("fleetgauge stream", "ann", 1, NOON)
BOB = LeaseHolder("fleetgauge backfill", "bob", 2, NOON)


@dataclass
class MemoryObjects:
    contents: dict[int, str] = field(default_factory=dict)
    is_available: bool = True

    def list_numbers(self) -> list[int]:
        self._answer()
        return list(self.contents)

    def read(self, number: int) -> str:
        self._answer()
        return self.contents.get(number, "")

    def create(self, number: int, content: str) -> bool:
        self._answer()
        return self.contents.setdefault(number, content) is content

    def replace(self, number: int, content: str) -> None:
        self._answer()
        self.contents[number] = content

    def delete(self, number: int) -> None:
        self._answer()
        del self.contents[number]

    def _answer(self) -> None:
        if not self.is_available:
            raise StoreUnavailableError("no answer")


@dataclass
class World:
    """A store and a clock; ``meanwhile`` is called for each second that a process waits."""

    objects: MemoryObjects = field(default_factory=MemoryObjects)
    now_s: float = 0
    meanwhile: Callable[[float], object] = lambda _: None

    def wait(self, seconds: float) -> None:
        self.now_s += seconds
        self.meanwhile(self.now_s)

    def lease(self, holder: LeaseHolder) -> SharedLease:
        return SharedLease(self.objects, holder, lambda: self.now_s, self.wait)


@pytest.fixture
def world() -> World:
    return World()


def acquire(lease: SharedLease) -> list[str]:
    """Take the lease, and return which holders were waited for."""
    waited_for: list[str] = []
    lease.acquire(waited_for.append)
    return waited_for


def may_commit(lease: SharedLease) -> bool:
    try:
        lease.confirm()
    except LeaseLostError:
        return False
    return True


def test_a_second_process_is_told_who_holds_the_lease(world: World) -> None:
    ann, bob = world.lease(ANN), world.lease(BOB)
    assert acquire(ann) == []
    world.meanwhile = lambda now_s: ann.renew() if now_s % 10 == 0 else None
    with pytest.raises(LeaseTakenError) as taken:
        acquire(bob)
    assert str(taken.value) == "`fleetgauge stream` on ann (process 1) since 2026-04-01T12:00:00Z"
    assert may_commit(ann)


def test_a_lease_that_was_released_is_free_at_once(world: World) -> None:
    ann, bob = world.lease(ANN), world.lease(BOB)
    acquire(ann)
    ann.release()
    assert acquire(bob) == []
    assert world.now_s == 0


@pytest.mark.parametrize("damaged", ["", "{", "\x00" * 100, "null"])
def test_an_object_that_was_damaged_does_not_free_the_lease(world: World, damaged: str) -> None:
    ann, bob = world.lease(ANN), world.lease(BOB)
    acquire(ann)
    world.objects.contents[1] = damaged
    world.meanwhile = lambda now_s: ann.renew() if now_s % 10 == 0 else None
    if damaged:
        # Not its own any more, as far as the holder can see.
        assert acquire(bob) == ["another process"]
        assert not may_commit(ann)
    else:
        with pytest.raises(LeaseTakenError):
            acquire(bob)
        assert may_commit(ann)


def test_a_holder_whose_object_is_gone_stops_at_its_next_renewal(world: World) -> None:
    ann, bob = world.lease(ANN), world.lease(BOB)
    acquire(ann)
    world.objects.contents.clear()
    assert acquire(bob) == []
    ann.renew()
    assert not may_commit(ann)
    bob.renew()
    assert may_commit(bob)


def test_a_holder_that_was_suspended_does_not_follow_one_that_began_anew(world: World) -> None:
    ann, bob = world.lease(ANN), world.lease(BOB)
    acquire(ann)
    world.objects.contents.clear()
    acquire(bob)
    world.now_s += DURATION_S
    bob.renew()
    assert not may_commit(ann)


def test_a_holder_whose_object_is_gone_says_so(world: World) -> None:
    ann = world.lease(ANN)
    acquire(ann)
    world.objects.contents.clear()
    ann.renew()
    with pytest.raises(LeaseLostError, match=r"was removed, so that another process may write: start again$"):
        ann.confirm()


def test_a_holder_whose_object_was_replaced_releases_nothing(world: World) -> None:
    ann, bob, carol = world.lease(ANN), world.lease(BOB), world.lease(ANN)
    acquire(ann)
    world.objects.contents.clear()
    acquire(bob)
    ann.release()
    world.meanwhile = lambda now_s: bob.renew() if now_s % 10 == 0 else None
    with pytest.raises(LeaseTakenError):
        acquire(carol)


def test_the_lease_of_a_process_that_died_expires(world: World) -> None:
    acquire(world.lease(ANN))
    bob = world.lease(BOB)
    assert acquire(bob) == [str(ANN)]
    assert world.now_s == DURATION_S
    assert may_commit(bob)


def test_a_suspended_holder_that_was_followed_does_not_commit(world: World) -> None:
    ann, bob = world.lease(ANN), world.lease(BOB)
    acquire(ann)
    acquire(bob)
    with pytest.raises(
        LeaseLostError, match="another process has taken the lake over: `fleetgauge backfill` on bob"
    ):
        ann.confirm()
    ann.renew()
    ann.release()
    assert not may_commit(ann)
    assert may_commit(bob)
    assert "released" not in [
        key for key, value in json.loads(world.objects.contents[2]).items() if value is True
    ]


def test_a_suspended_holder_that_nobody_followed_goes_on(world: World) -> None:
    ann = world.lease(ANN)
    acquire(ann)
    world.now_s += 3600
    assert may_commit(ann)
    assert list(world.objects.contents) == [1, 2]
    # A process that waited for the first object cannot create the second one.
    assert not world.objects.create(2, "bob")


def test_a_store_that_ignores_the_condition_of_a_write_is_refused(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overwrite(number: int, content: str) -> bool:
        world.objects.replace(number, content)
        return True

    monkeypatch.setattr(world.objects, "create", overwrite)
    with pytest.raises(NoConditionalWritesError):
        acquire(world.lease(ANN))


def test_a_request_that_is_sent_twice_finds_its_own_object(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, create = world.lease(ANN), world.objects.create

    def answer_late(number: int, content: str) -> bool:
        return create(number, content) and create(number, content)

    monkeypatch.setattr(world.objects, "create", answer_late)
    assert acquire(ann) == []
    assert may_commit(ann)


def test_a_waiting_process_that_is_suspended_looks_again(world: World) -> None:
    ann, bob = world.lease(ANN), world.lease(BOB)
    acquire(ann)

    def suspend_bob(now_s: float) -> None:
        if now_s == 5:
            for _ in range(8):
                world.now_s += 10
                ann.renew()

    world.meanwhile = suspend_bob
    with pytest.raises(LeaseTakenError):
        acquire(bob)
    assert may_commit(ann)


def test_a_renewal_that_the_store_delays_extends_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, replace_object = world.lease(ANN), world.objects.replace
    acquire(ann)

    def delay(number: int, content: str) -> None:
        world.now_s += 30
        replace_object(number, content)

    monkeypatch.setattr(world.objects, "replace", delay)
    world.now_s = 35
    ann.renew()
    world.objects.create(2, "bob")
    assert not may_commit(ann)


def test_without_the_store_the_holder_stops_before_others_may_begin(world: World) -> None:
    ann = world.lease(ANN)
    acquire(ann)
    world.objects.is_available = False
    for _ in range(39):
        world.now_s += 1
        ann.renew()
        assert may_commit(ann)
    world.now_s += 1
    with pytest.raises(LeaseLostError, match="its store is not available"):
        ann.confirm()
    world.objects.is_available = True
    assert may_commit(ann)


def test_of_two_that_wait_for_the_same_end_one_gets_the_lease(world: World) -> None:
    ann, bob = world.lease(ANN), world.lease(BOB)
    acquire(ann)
    carol = world.lease(replace(BOB, host="carol"))
    has_begun = []

    def let_carol_take_it(now_s: float) -> None:
        if now_s >= DURATION_S and not has_begun:
            has_begun.append(True)
            assert world.objects.create(2, "{}")
            world.meanwhile = lambda _: None

    world.meanwhile = let_carol_take_it
    acquire(bob)
    assert max(world.objects.contents) == 3
    assert may_commit(bob)
    assert not may_commit(ann)
    world.meanwhile = lambda _: bob.renew()
    with pytest.raises(LeaseTakenError):
        acquire(carol)


def test_few_objects_of_earlier_holders_are_kept(world: World) -> None:
    for number in range(1, 20):
        lease = world.lease(ANN)
        acquire(lease)
        lease.release()
        assert max(world.objects.contents) == number
    assert len(world.objects.contents) == 5


@given(st.sets(st.integers(0, 200)), st.integers(0, 100))
def test_no_two_processes_may_commit_at_the_same_time(renewals: set[int], begins_s: int) -> None:
    """Ann renews at some seconds and is suspended at others, while Bob waits for her."""
    world = World()
    ann, bob = world.lease(ANN), world.lease(BOB)
    acquire(ann)

    def renew(now_s: float) -> None:
        if now_s in renewals:
            ann.renew()

    world.meanwhile = renew
    for _ in range(begins_s):
        world.wait(1)
    # A clock of the time until which Ann may commit without asking the store.
    may_commit_until_s = ann._may_commit_until_s
    try:
        acquire(bob)
    except LeaseTakenError:
        assert may_commit(ann)
        return
    assert world.now_s >= ann._may_commit_until_s >= may_commit_until_s
    assert not may_commit(ann)
    assert may_commit(bob)
