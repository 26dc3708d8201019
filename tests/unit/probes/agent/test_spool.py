"""The spool against a list; killed processes; files that cannot be had."""

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

ROOM = 1_000_000


def told(spool: Spool) -> list[tuple[int, int]]:
    """Sequence and attempted of what waits, in its order."""
    values = [PROBE_MINUTE.decode(one.value) for one in spool.waiting(0, 1_000_000)]
    return [(value["sequence"], value["attempted"]) for value in values]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "spool"


@pytest.fixture
def spool(folder: Path) -> Iterator[Spool]:
    one = Spool(folder, ROOM)
    assert one.open() == 0
    yield one
    one.close()


def left_open(spool: Spool) -> int:
    """What the next run finds open."""
    spool.close()
    return spool.open()


def test_closed_records_wait_in_the_order_of_their_closing_until_they_are_forgotten(spool: Spool) -> None:
    spool.keep([record(2), record(1)], [])
    spool.keep([record(0)], [])
    assert told(spool) == [(2, 100), (1, 100), (0, 100)]
    first, second, _ = spool.waiting(0, 10)
    assert spool.waiting(first.position, 1) == [second]
    assert (first.key, first.value) == ("orders", record(2).encode())
    spool.forget([first.position])
    assert told(spool) == [(1, 100), (0, 100)]


def test_positions_are_not_given_again_when_all_are_forgotten(spool: Spool) -> None:
    spool.keep([record(0)], [])
    (before,) = spool.waiting(0, 10)
    spool.forget([before.position])
    spool.keep([record(1)], [])
    (after,) = spool.waiting(before.position, 10)
    assert after.position > before.position


def test_an_open_minute_does_not_go_out_and_gives_way_to_its_closed_record(spool: Spool) -> None:
    spool.keep([], [record(0, attempted=10)])
    spool.keep([], [record(0, attempted=20)])
    assert told(spool) == []
    spool.keep([record(0, attempted=100)], [])
    assert told(spool) == [(0, 100)]
    assert left_open(spool) == 0


def test_an_open_minute_of_an_ended_run_goes_out_as_it_stood_last(spool: Spool) -> None:
    spool.keep([record(0)], [record(1, attempted=10), record(2, attempted=1)])
    spool.keep([], [record(1, attempted=20)])
    assert left_open(spool) == 2
    assert told(spool) == [(0, 100), (2, 1), (1, 20)]


def test_two_runs_may_use_the_same_sequences(spool: Spool) -> None:
    spool.keep([record(0)], [])
    spool.keep([record(0, attempted=7, run_id="another")], [])
    assert told(spool) == [(0, 100), (0, 7)]


def test_beyond_its_bound_the_oldest_closed_records_go(folder: Path) -> None:
    sizes = [len(record(n).encode()) for n in range(350)]
    small = Spool(folder, sum(sizes[:300]))
    small.open()
    assert small.keep([record(n) for n in range(300)], [record(999)]) == 0
    assert small.keep([record(n) for n in range(300, 350)], []) == 100
    assert [sequence for sequence, _ in told(small)] == list(range(100, 350))
    assert small.state() == SpoolState(250, sum(sizes[100:]), NOON + 100 * MINUTE)
    small.close()


def test_a_record_larger_than_the_bound_is_dropped_and_the_agent_goes_on(folder: Path) -> None:
    tiny = Spool(folder, 10)
    tiny.open()
    assert tiny.keep([record(0)], []) == 1
    assert tiny.state() == SpoolState(0, 0, None)
    tiny.close()


def test_a_folder_is_one_agents_until_it_ends(spool: Spool, folder: Path) -> None:
    with pytest.raises(SpoolError, match="another agent has it"):
        Spool(folder, ROOM).open()
    assert left_open(spool) == 0


def test_a_folder_that_cannot_be_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SpoolError, match=r"file/spool: Not a directory$"):
        Spool(tmp_path / "file" / "spool", ROOM).open()


def test_a_file_of_a_later_version_is_left_alone(spool: Spool, folder: Path) -> None:
    spool.close()
    with sqlite3.connect(folder / "records.sqlite") as later:
        later.execute("PRAGMA user_version = 99")
    later.close()
    with pytest.raises(SpoolError, match="version 99, this agent knows 1"):
        Spool(folder, ROOM).open()


@pytest.mark.parametrize("damage", [b"not a database" * 100, b"SQLite format 3\x00" + b"\xff" * 5000])
def test_a_damaged_file_is_set_aside(folder: Path, damage: bytes) -> None:
    folder.mkdir()
    (folder / "records.sqlite").write_bytes(damage)
    fresh = Spool(folder, ROOM)
    assert fresh.open() == 0
    fresh.keep([record(0)], [])
    assert told(fresh) == [(0, 100)]
    fresh.close()
    (aside,) = folder.glob("damaged-*")
    assert aside.read_bytes() == damage


def test_a_file_damaged_in_its_middle_is_set_aside(spool: Spool, folder: Path) -> None:
    spool.keep([record(n) for n in range(200)], [record(200)])
    spool.close()
    path = folder / "records.sqlite"
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    assert spool.open() == 0
    assert told(spool) == []
    assert list(folder.glob("damaged-*"))


def test_a_disk_that_takes_nothing_is_an_error_and_keeps_what_it_has(spool: Spool) -> None:
    spool.keep([record(0)], [])
    (pages,) = spool._connection.execute("PRAGMA page_count").fetchone()
    spool._connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(SpoolError, match="disk is full"):
        spool.keep([record(n) for n in range(1, 2000)], [])
    assert told(spool) == [(0, 100)]
    assert spool.state().records == 1


_WRITER = """
import sys
from pathlib import Path
from fleetgauge_probes.agent.spool import Spool
from tests.probe_minutes import record
spool = Spool(Path(sys.argv[1]), 10**9)
spool.open()
for n in range(0, 10**9, 3):
    spool.keep([record(n), record(n + 1)], [record(n + 2, attempted=1)])
    spool.keep([record(n + 2)], [])
    print(n + 2, flush=True)
"""


def test_what_a_killed_process_kept_is_there(folder: Path) -> None:
    for _ in range(5):
        last = -1
        command = [sys.executable, "-c", _WRITER, str(folder)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout
            for line in writer.stdout:
                last = int(line)
                if last > 100:
                    writer.kill()
        spool = Spool(folder, ROOM * 1000)
        spool.open()
        sequences = [sequence for sequence, _ in told(spool)]
        assert sequences[: last + 1] == list(range(last + 1))
        spool.forget([one.position for one in spool.waiting(0, 1_000_000)])
        assert spool.state() == SpoolState(0, 0, None)
        spool.close()


class SpoolIsAList(RuleBasedStateMachine):
    """Every order of keeping, forgetting and ending does to the file what it does to a list."""

    def __init__(self) -> None:
        super().__init__()
        self._place = tempfile.TemporaryDirectory()
        self._spool = Spool(Path(self._place.name), ROOM)
        self._spool.open()
        self._next = 0
        self._open: dict[int, int] = {}
        self._closed: list[tuple[int, int]] = []

    def teardown(self) -> None:
        self._spool.close()
        self._place.cleanup()

    @rule(counts=st.lists(st.integers(0, 100), min_size=1, max_size=3))
    def open_more(self, counts: list[int]) -> None:
        opened = {self._next + n: attempted for n, attempted in enumerate(counts)}
        self._next += len(counts)
        self._spool.keep([], [record(n, attempted) for n, attempted in opened.items()])
        self._open |= opened

    @precondition(lambda self: self._open)
    @rule(data=st.data())
    def go_on_with_one_and_close_another(self, data: st.DataObject) -> None:
        names = data.draw(st.permutations(sorted(self._open)))
        going_on, closing = names[1:2], names[0]
        self._spool.keep([record(closing)], [record(n, 50) for n in going_on])
        del self._open[closing]
        self._closed.append((closing, 100))
        for n in going_on:
            self._open.pop(n)
            self._open[n] = 50

    @precondition(lambda self: self._closed)
    @rule(data=st.data())
    def forget_some(self, data: st.DataObject) -> None:
        gone = data.draw(st.sets(st.sampled_from(range(len(self._closed)))))
        waiting, names = self._spool.waiting(0, 1000), told(self._spool)
        self._spool.forget([waiting[n].position for n in gone])
        for n in gone:
            self._closed.remove(names[n])

    @rule()
    def end_and_begin(self) -> None:
        self._spool.close()
        assert self._spool.open() == len(self._open)
        self._closed += self._open.items()
        self._open = {}

    @invariant()
    def is_the_list(self) -> None:
        assert sorted(told(self._spool)) == sorted(self._closed)
        state = self._spool.state()
        sizes = [len(record(n, attempted).encode()) for n, attempted in self._closed]
        assert (state.records, state.value_bytes) == (len(sizes), sum(sizes))


TestSpoolIsAList = SpoolIsAList.TestCase
TestSpoolIsAList.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)
