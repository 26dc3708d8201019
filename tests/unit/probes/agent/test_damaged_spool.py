"""Every file of a spool, damaged in every way: the agent goes on, and forwards what is left."""

from pathlib import Path
from random import Random
from shutil import copytree

import pytest

from fleetgauge_core.contract import PROBE_MINUTE
from fleetgauge_probes.agent.spool import DamagedSpoolError, Spool
from tests.damage import Damage, cut, empty, fill_with_zeros, flip_bit, remove
from tests.probe_minutes import record

MAX_BYTES = 10**8
RECORDS = 300
DAMAGES = (empty, cut, fill_with_zeros, flip_bit, remove)
#: Of an agent that was killed, and of one that has ended.
FILES = (("killed", "records.sqlite"), ("killed", "records.sqlite-wal"), ("ended", "records.sqlite"))
#: With damage here every record is left: a killed agent's file is in its log, or the flipped bit in a value.
COMPLETE = {
    ("killed", "records.sqlite", "cut"),
    ("killed", "records.sqlite", "fill_with_zeros"),
    ("killed", "records.sqlite", "flip_bit"),
    ("ended", "records.sqlite", "flip_bit"),
}


@pytest.fixture(scope="module")
def spools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same spool as a killed agent leaves it, and as one that has ended does."""
    folder = tmp_path_factory.mktemp("spools")
    spool = Spool(folder / "ended", MAX_BYTES)
    spool.open()
    for first in range(0, RECORDS, 10):
        spool.store([record(sequence) for sequence in range(first, first + 10)], [])
    copytree(folder / "ended", folder / "killed")
    spool.close()
    return folder


def go_on(folder: Path) -> list[int | None]:
    """Do what the next agent does, and return the numbers of what it forwards; None for what is no record."""
    spool = Spool(folder, MAX_BYTES)
    spool.open()
    try:
        spool.read_state()
        closed = spool.read_closed(0, RECORDS + 1)
        spool.store([record(RECORDS + 1)], [])
        spool.remove([each.position for each in closed])
        state = spool.read_state()
        assert (state.records, state.value_bytes) == (1, len(record(RECORDS + 1).encode()))
    finally:
        spool.close()
    assert all(isinstance(each.key, str) and isinstance(each.value, bytes) for each in closed)
    return [decode_sequence(each.value) for each in closed]


def decode_sequence(value: bytes) -> int | None:
    try:
        return int(PROBE_MINUTE.decode(value)["sequence"])
    except ValueError:
        return None


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("file", FILES, ids="-".join)
def test_the_next_agent_goes_on(spools: Path, tmp_path: Path, file: tuple[str, str], damage: Damage) -> None:
    state, name = file
    folder = copytree(spools / state, tmp_path / "spool")
    damage(folder / name)
    sequences = go_on(folder)
    if (state, name, damage.__name__) in COMPLETE:
        assert len(sequences) == RECORDS
    else:
        # A write-ahead log is read up to the damage.
        assert sequences == list(range(len(sequences)))
        assert len(sequences) < RECORDS
    has_renamed = any(path.name.startswith("damaged-") for path in folder.iterdir())
    assert has_renamed is (state == "ended" and damage in (cut, fill_with_zeros))


def test_a_flipped_bit_anywhere_stops_nothing(spools: Path, tmp_path: Path) -> None:
    rng = Random(1)
    outcomes = set()
    for number in range(100):
        folder = copytree(spools / "ended", tmp_path / str(number))
        file = folder / "records.sqlite"
        data = bytearray(file.read_bytes())
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        file.write_bytes(data)
        left = go_on(folder)
        has_renamed = any(path.name.startswith("damaged-") for path in folder.iterdir())
        outcomes.add((len(left), has_renamed))
    assert outcomes == {(RECORDS, False), (0, True)}


def test_a_file_that_is_damaged_while_it_is_open_ends_the_agent_with_a_reason(tmp_path: Path) -> None:
    spool = Spool(tmp_path, MAX_BYTES)
    spool.open()
    try:
        # More than SQLite keeps in memory.
        for first in range(0, 5000, 100):
            spool.store([record(sequence) for sequence in range(first, first + 100)], [])
        for path in tmp_path.iterdir():
            with path.open("r+b") as file:
                file.write(bytes(path.stat().st_size))
        with pytest.raises(DamagedSpoolError, match=rf"^{tmp_path}: database disk image is malformed$"):
            spool.read_closed(0, 5000)
    finally:
        spool.close()
    spool.open()
    spool.close()
