"""The spool compared with a list; killed processes; unusable files."""

import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fleetgauge_core.contract import PROBE_MINUTE
from fleetgauge_probes.agent.spool import Spool, SpoolError, SpoolState
from tests.probe_minutes import MINUTE, NOON, record

MAX_BYTES = 1_000_000


def read_contents(spool: Spool) -> list[tuple[int, int]]:
    """Return the sequence and the attempted probes of the closed records, in order."""
    values = [PROBE_MINUTE.decode(waiting.value) for waiting in spool.read_closed(0, 1_000_000)]
    return [(value["sequence"], value["attempted"]) for value in values]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "spool"


@pytest.fixture
def spool(folder: Path) -> Iterator[Spool]:
    opened = Spool(folder, MAX_BYTES)
    assert opened.open() == 0
    yield opened
    opened.close()


def reopen(spool: Spool) -> int:
    """Return how many open minutes the next run finds."""
    spool.close()
    return spool.open()


def test_closed_records_are_kept_in_the_order_of_closing_until_they_are_removed(spool: Spool) -> None:
    spool.store([record(2), record(1)], [])
    spool.store([record(0)], [])
    assert read_contents(spool) == [(2, 100), (1, 100), (0, 100)]
    first, second, _ = spool.read_closed(0, 10)
    assert spool.read_closed(first.position, 1) == [second]
    assert (first.key, first.value) == ("orders", record(2).encode())
    spool.remove([first.position])
    assert read_contents(spool) == [(1, 100), (0, 100)]


def test_positions_are_not_reused_after_all_records_are_removed(spool: Spool) -> None:
    spool.store([record(0)], [])
    (before,) = spool.read_closed(0, 10)
    spool.remove([before.position])
    spool.store([record(1)], [])
    (after,) = spool.read_closed(before.position, 10)
    assert after.position > before.position


def test_an_open_minute_is_not_forwarded_and_is_replaced_by_its_closed_record(spool: Spool) -> None:
    spool.store([], [record(0, attempted=10)])
    spool.store([], [record(0, attempted=20)])
    assert read_contents(spool) == []
    spool.store([record(0, attempted=100)], [])
    assert read_contents(spool) == [(0, 100)]
    assert reopen(spool) == 0


def test_an_open_minute_of_an_ended_run_is_closed_as_last_stored(spool: Spool) -> None:
    spool.store([record(0)], [record(1, attempted=10), record(2, attempted=1)])
    spool.store([], [record(1, attempted=20)])
    assert reopen(spool) == 2
    assert read_contents(spool) == [(0, 100), (2, 1), (1, 20)]


def test_two_runs_may_use_the_same_sequences(spool: Spool) -> None:
    spool.store([record(0)], [])
    spool.store([record(0, attempted=7, run_id="another")], [])
    assert read_contents(spool) == [(0, 100), (0, 7)]


def test_beyond_the_maximum_size_the_oldest_closed_records_are_dropped(folder: Path) -> None:
    sizes = [len(record(n).encode()) for n in range(350)]
    small = Spool(folder, sum(sizes[:300]))
    small.open()
    assert small.store([record(n) for n in range(300)], [record(999)]) == 0
    assert small.store([record(n) for n in range(300, 350)], []) == 100
    assert [sequence for sequence, _ in read_contents(small)] == list(range(100, 350))
    assert small.read_state() == SpoolState(250, sum(sizes[100:]), NOON + 100 * MINUTE)
    small.close()


def test_a_record_larger_than_the_maximum_size_is_dropped(folder: Path) -> None:
    tiny = Spool(folder, 10)
    tiny.open()
    assert tiny.store([record(0)], []) == 1
    assert tiny.read_state() == SpoolState(0, 0, None)
    tiny.close()


def test_a_folder_is_locked_by_one_agent_until_it_closes_it(spool: Spool, folder: Path) -> None:
    with pytest.raises(SpoolError, match="another agent uses it"):
        Spool(folder, MAX_BYTES).open()
    assert reopen(spool) == 0


def test_an_impossible_folder_is_an_error_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SpoolError, match=r"file/spool: Not a directory$"):
        Spool(tmp_path / "file" / "spool", MAX_BYTES).open()


def test_a_file_of_a_newer_version_is_not_opened(spool: Spool, folder: Path) -> None:
    spool.close()
    with sqlite3.connect(folder / "records.sqlite") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(SpoolError, match="has version 99, but this agent supports version 1"):
        Spool(folder, MAX_BYTES).open()


@pytest.mark.parametrize("damage", [b"not a database" * 100, b"SQLite format 3\x00" + b"\xff" * 5000])
def test_a_damaged_file_is_renamed(folder: Path, damage: bytes) -> None:
    folder.mkdir()
    (folder / "records.sqlite").write_bytes(damage)
    fresh = Spool(folder, MAX_BYTES)
    assert fresh.open() == 0
    fresh.store([record(0)], [])
    assert read_contents(fresh) == [(0, 100)]
    fresh.close()
    (aside,) = folder.glob("damaged-*")
    assert aside.read_bytes() == damage


def test_a_file_damaged_in_the_middle_is_renamed(spool: Spool, folder: Path) -> None:
    spool.store([record(n) for n in range(200)], [record(200)])
    spool.close()
    path = folder / "records.sqlite"
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    assert spool.open() == 0
    assert read_contents(spool) == []
    assert list(folder.glob("damaged-*"))


def test_a_full_disk_is_an_error_and_keeps_the_stored_records(spool: Spool) -> None:
    spool.store([record(0)], [])
    (pages,) = spool._connection.execute("PRAGMA page_count").fetchone()
    spool._connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(SpoolError, match="disk is full"):
        spool.store([record(n) for n in range(1, 2000)], [])
    assert read_contents(spool) == [(0, 100)]
    assert spool.read_state().records == 1


_WRITER = """
import sys
from pathlib import Path
from fleetgauge_probes.agent.spool import Spool
from tests.probe_minutes import record
spool = Spool(Path(sys.argv[1]), 10**9)
spool.open()
for n in range(0, 10**9, 3):
    spool.store([record(n), record(n + 1)], [record(n + 2, attempted=1)])
    spool.store([record(n + 2)], [])
    print(n + 2, flush=True)
"""


def test_records_stored_by_a_killed_process_are_kept(folder: Path) -> None:
    for _ in range(5):
        last = -1
        command = [sys.executable, "-c", _WRITER, str(folder)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout
            for line in writer.stdout:
                last = int(line)
                if last > 100:
                    writer.kill()
        spool = Spool(folder, MAX_BYTES * 1000)
        spool.open()
        sequences = [sequence for sequence, _ in read_contents(spool)]
        assert sequences[: last + 1] == list(range(last + 1))
        spool.remove([waiting.position for waiting in spool.read_closed(0, 1_000_000)])
        assert spool.read_state() == SpoolState(0, 0, None)
        spool.close()


class SpoolStateMachine(RuleBasedStateMachine):
    """Storing, removing and reopening in any order has the same effect on the file as on a list."""

    def __init__(self) -> None:
        super().__init__()
        self._place = tempfile.TemporaryDirectory()
        self._spool = Spool(Path(self._place.name), MAX_BYTES)
        self._spool.open()
        self._next = 0
        self._open: dict[int, int] = {}
        self._closed: list[tuple[int, int]] = []

    def teardown(self) -> None:
        self._spool.close()
        self._place.cleanup()

    @rule(counts=st.lists(st.integers(0, 100), min_size=1, max_size=3))
    def open_minutes(self, counts: list[int]) -> None:
        opened = {self._next + n: attempted for n, attempted in enumerate(counts)}
        self._next += len(counts)
        self._spool.store([], [record(n, attempted) for n, attempted in opened.items()])
        self._open |= opened

    @precondition(lambda self: self._open)
    @rule(data=st.data())
    def store_an_open_minute_and_close_another(self, data: st.DataObject) -> None:
        names = data.draw(st.permutations(sorted(self._open)))
        still_open, closing = names[1:2], names[0]
        self._spool.store([record(closing)], [record(n, 50) for n in still_open])
        del self._open[closing]
        self._closed.append((closing, 100))
        for n in still_open:
            self._open.pop(n)
            self._open[n] = 50

    @precondition(lambda self: self._closed)
    @rule(data=st.data())
    def remove_any(self, data: st.DataObject) -> None:
        gone = data.draw(st.sets(st.sampled_from(range(len(self._closed)))))
        waiting, names = self._spool.read_closed(0, 1000), read_contents(self._spool)
        self._spool.remove([waiting[n].position for n in gone])
        for n in gone:
            self._closed.remove(names[n])

    @rule()
    def reopen_the_spool(self) -> None:
        self._spool.close()
        assert self._spool.open() == len(self._open)
        self._closed += self._open.items()
        self._open = {}

    @invariant()
    def equals_the_list(self) -> None:
        assert sorted(read_contents(self._spool)) == sorted(self._closed)
        state = self._spool.read_state()
        sizes = [len(record(n, attempted).encode()) for n, attempted in self._closed]
        assert (state.records, state.value_bytes) == (len(sizes), sum(sizes))


TestSpoolStateMachine = SpoolStateMachine.TestCase
TestSpoolStateMachine.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)
