"""The lease of a lake in a folder, at a file URI and in a real object store."""

import signal
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fleetgauge_core.lake.lease import LeaseError, hold_lease
from fleetgauge_core.lake.lease_objects import StoredLeaseObjects, open_lease_objects
from fleetgauge_core.lake.shared_lease import (
    DURATION_S,
    LeaseHolder,
    LeaseLostError,
    LeaseTakenError,
    NoConditionalWritesError,
    SharedLease,
    StoreUnavailableError,
)
from fleetgauge_core.lake.table_store import TableStore
from fleetgauge_core.tables import ACTIONS
from tests.damage import Damage, cut, empty, fill_with_zeros, flip_bit
from tests.lake_writer import another_holder, commit
from tests.s3 import S3
from tests.waiting import let_pass

HOLDER = LeaseHolder("fleetgauge stream", "ann", 1, datetime(2026, 4, 1, 12, tzinfo=UTC))
SHORT_S = 3.0


def test_a_second_command_says_who_writes_a_lake_in_a_folder_since_when(tmp_path: Path) -> None:
    lake = str(tmp_path / "lake")
    with another_holder(lake) as holder:
        for suspended in (False, True):
            if suspended:
                holder.send_signal(signal.SIGSTOP)
            with pytest.raises(LeaseError) as taken, hold_lease(lake, "fleetgauge backfill", print):
                pass
            message = str(taken.value)
            assert message.startswith(
                f"{lake}: another pipeline is writing this lake by `fleetgauge stream` on "
            )
            assert f"(process {holder.pid}) since {datetime.now(UTC):%Y-%m-%d}" in message
            assert message.endswith("; stop it first")
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        # The kernel releases the lock of a process that was killed.
        with hold_lease(lake, "fleetgauge backfill", print) as lease:
            lease.confirm()


def test_a_holder_whose_lease_file_was_removed_commits_nothing(tmp_path: Path) -> None:
    lake = str(tmp_path / "lake")
    file = tmp_path / "lake" / "_checkpoints" / "lease"
    with hold_lease(lake, "fleetgauge stream", print) as lease:
        lease.confirm()
        file.unlink()
        with pytest.raises(LeaseLostError, match=rf"^{file} was removed or replaced"):
            lease.confirm()
        with hold_lease(lake, "fleetgauge backfill", print) as another:
            another.confirm()
            with pytest.raises(LeaseLostError):
                lease.confirm()


@pytest.mark.parametrize("damage", [empty, cut, fill_with_zeros, flip_bit])
def test_a_lease_file_that_was_damaged_is_still_locked(tmp_path: Path, damage: Damage) -> None:
    lake = str(tmp_path / "lake")
    with hold_lease(lake, "fleetgauge stream", print) as lease:
        damage(tmp_path / "lake" / "_checkpoints" / "lease")
        lease.confirm()
        is_taken = pytest.raises(LeaseError, match=r"another pipeline is writing this lake.*; stop it first$")
        with is_taken, hold_lease(lake, "fleetgauge backfill", print):
            pass


def test_a_lake_of_which_the_operator_is_the_only_writer_has_no_lease(tmp_path: Path) -> None:
    with hold_lease("gs://nowhere/lake", "fleetgauge stream", print, is_only_writer=True) as lease:
        lease.confirm()


def test_a_command_releases_a_lake_at_a_file_uri_and_the_next_one_begins_at_once(tmp_path: Path) -> None:
    lake = f"file://{tmp_path}/a%20lake"
    waited_for: list[str] = []
    for _ in range(2):
        with hold_lease(lake, "fleetgauge stream", waited_for.append) as lease:
            lease.confirm()
    assert waited_for == []
    assert sorted(path.name for path in (tmp_path / "a lake" / "_checkpoints" / "leases").iterdir()) == [
        "000000000001.json",
        "000000000002.json",
    ]


@pytest.fixture(params=["file", "s3"])
def objects(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> StoredLeaseObjects:
    if request.param == "file":
        return open_lease_objects(f"file://{tmp_path}/lake")
    s3: S3 = request.getfixturevalue("s3")
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    bucket = f"lease-{time.monotonic_ns()}"
    s3.make_bucket(bucket)
    return open_lease_objects(f"s3://{bucket}/lake")


def test_a_store_refuses_to_create_an_object_that_exists(objects: StoredLeaseObjects) -> None:
    assert objects.list_numbers() == []
    assert objects.read(1) == ""
    assert objects.create(1, "one")
    assert not objects.create(1, "two")
    assert objects.read(1) == "one"
    objects.replace(1, "three")
    assert objects.create(2, "four")
    assert (objects.read(1), sorted(objects.list_numbers())) == ("three", [1, 2])
    objects.delete(1)
    assert objects.list_numbers() == [2]


def test_a_lease_in_a_store_is_renewed_expires_and_is_lost(objects: StoredLeaseObjects) -> None:
    ann = SharedLease(objects, HOLDER, time.monotonic, duration_s=SHORT_S)
    ann.acquire(lambda _: None)
    bob = SharedLease(objects, HOLDER, time.monotonic, wait=lambda _: ann.renew(), duration_s=SHORT_S)
    with pytest.raises(LeaseTakenError):
        bob.acquire(lambda _: None)
    carol = SharedLease(
        objects,
        HOLDER,
        time.monotonic,
        wait=lambda seconds: let_pass(time.monotonic() + seconds),
        duration_s=SHORT_S,
    )
    carol.acquire(lambda _: None)
    carol.confirm()
    with pytest.raises(LeaseLostError, match="another process has taken the lake over"):
        ann.confirm()


def test_a_store_that_does_not_answer_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "kept-to-ourselves")
    with pytest.raises(StoreUnavailableError, match="the object store does not respond") as error:
        open_lease_objects("s3://bucket/lake").list_numbers()
    assert "kept-to-ourselves" not in str(error.value)
    with (
        pytest.raises(LeaseError, match="s3://bucket/lake: its lease cannot be taken: the object store"),
        hold_lease("s3://bucket/lake", "fleetgauge stream", print),
    ):
        pass


def test_a_store_without_conditional_writes_is_refused_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(*_: object) -> bool:
        raise NoConditionalWritesError("not implemented")

    monkeypatch.setattr(StoredLeaseObjects, "create", refuse)
    lake = f"file://{tmp_path}/lake"
    with (
        pytest.raises(LeaseError, match="no conditional writes"),
        hold_lease(lake, "", print),
    ):
        pass


@pytest.fixture(params=["file", "s3"])
def shared_lake(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URI of a lake that nothing has written to."""
    if request.param == "file":
        return f"file://{tmp_path}/lake"
    s3: S3 = request.getfixturevalue("s3")
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    bucket = f"lake-{time.monotonic_ns()}"
    s3.make_bucket(bucket)
    return f"s3://{bucket}/lake"


def read_ids(lake: str) -> list[str]:
    return sorted(row["action_id"] for row in TableStore(lake, ACTIONS).rows(columns=["action_id"]))


@pytest.mark.thorough
def test_a_holder_that_was_suspended_commits_nothing_after_another_has_followed_it(shared_lake: str) -> None:
    with another_holder(shared_lake) as first:
        assert commit(first, "first") == "committed"
        first.send_signal(signal.SIGSTOP)
        began_s = time.monotonic()
        with another_holder(shared_lake) as second:
            followed_s = time.monotonic() - began_s
            assert commit(second, "second") == "committed"
            first.send_signal(signal.SIGCONT)
            assert "another process has taken the lake over" in commit(first, "late")
            assert commit(second, "third") == "committed"
    assert DURATION_S <= followed_s <= 2 * DURATION_S
    assert read_ids(shared_lake) == ["first", "second", "third"]


@pytest.mark.thorough
def test_a_holder_that_was_killed_is_followed_after_the_expiry(shared_lake: str) -> None:
    with another_holder(shared_lake) as first:
        assert commit(first, "first") == "committed"
        first.kill()
    with another_holder(shared_lake) as second:
        assert commit(second, "second") == "committed"
    assert read_ids(shared_lake) == ["first", "second"]
