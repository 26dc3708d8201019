"""Every file of a spool, damaged in every way: the agent goes on, and forwards what is left."""

from pathlib import Path
from random import Random
from shutil import copytree, rmtree

import pytest

from fleetgauge_core.contract import PROBE_MINUTE
from fleetgauge_probes.agent.spool import Spool, SpoolError
from tests.damage import Damage, cut, empty, fill_with_zeros, flip_bit, remove
from tests.probe_minutes import record

MAX_BYTES = 10**8
RECORDS = 300
HEADER, PAGE = 100, 4096
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


def test_a_flipped_bit_of_the_first_page_stops_nothing_or_is_refused_in_one_line(tmp_path: Path) -> None:
    """It has the header and the text of the schema, which SQLite's own check does not compare."""
    spool = Spool(tmp_path / "whole", MAX_BYTES)
    spool.open()
    spool.store([record(sequence) for sequence in range(5)], [])
    spool.close()
    whole = (tmp_path / "whole" / "records.sqlite").read_bytes()
    places = [place for place in range(PAGE) if whole[place]]
    rng = Random(1)
    tried = [(place, rng.randrange(8)) for place in 2 * [*range(HEADER)]]
    tried += [(rng.choice(places), rng.randrange(8)) for _ in range(400)]
    refusals = set()
    for number, (place, bit) in enumerate(tried):
        folder = tmp_path / str(number)
        folder.mkdir()
        data = bytearray(whole)
        data[place] ^= 1 << bit
        (folder / "records.sqlite").write_bytes(data)
        try:
            left = go_on(folder)
        except SpoolError as error:
            refusals.add(str(error).removeprefix(f"{folder}: "))
        else:
            assert left in ([], [0, 1, 2, 3, 4])
        rmtree(folder)
    versions = {refusal for refusal in refusals if refusal.endswith("but this agent supports version 1")}
    assert refusals - versions <= {"attempt to write a readonly database", "unsupported file format"}


def damage_open_files(folder: Path) -> None:
    for path in folder.iterdir():
        with path.open("r+b") as file:
            file.write(bytes(path.stat().st_size))


def test_a_file_that_is_damaged_while_it_is_open_is_replaced_and_positions_go_on(tmp_path: Path) -> None:
    spool = Spool(tmp_path, MAX_BYTES)
    spool.open()
    try:
        # More than SQLite keeps in memory.
        for first in range(0, 5000, 100):
            spool.store([record(sequence) for sequence in range(first, first + 100)], [])
        read = spool.read_closed(0, 1000)
        damage_open_files(tmp_path)
        with pytest.raises(SpoolError, match=rf"^{tmp_path}: database disk image is malformed$"):
            spool.read_closed(0, 5000)
        spool.store([record(7000)], [])
        # What was under way is acknowledged now, and is not in the new file.
        spool.remove([each.position for each in read])
        (new,) = spool.read_closed(read[-1].position, 10)
        assert decode_sequence(new.value) == 7000
        assert spool.read_closed(0, 10) == [new]
    finally:
        spool.close()


def test_a_damaged_file_of_a_folder_that_cannot_be_written_is_replaced_once_it_can(tmp_path: Path) -> None:
    folder = tmp_path / "spool"
    spool = Spool(folder, MAX_BYTES)
    spool.open()
    try:
        for first in range(0, 5000, 100):
            spool.store([record(sequence) for sequence in range(first, first + 100)], [])
        damage_open_files(folder)
        with pytest.raises(SpoolError):
            spool.read_closed(0, 5000)
        folder.rename(tmp_path / "away")
        folder.write_text("no folder")
        with pytest.raises(SpoolError, match=r"^[^\n]+$"):
            spool.store([record(1)], [])
        folder.unlink()
        (tmp_path / "away").rename(folder)
        spool.store([record(1)], [])
        assert spool.read_state().records == 1
    finally:
        spool.close()
