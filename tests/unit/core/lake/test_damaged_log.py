"""Every file of a table's log, damaged in every way: no older state is ever read as the newest one."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from shutil import copytree
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from fleetgauge_core.lake.delta_table import open_table
from fleetgauge_core.lake.lake_files import FolderFiles, open_files
from fleetgauge_core.lake.log_damage import LOG_FOLDER
from fleetgauge_core.lake.newest_version import NewestVersion, decode_version, version_file
from fleetgauge_core.lake.table_repair import RepairOutcome, repair_before_writing, repair_table
from fleetgauge_core.lake.table_store import TableStore, TableStoreError
from fleetgauge_core.tables import DRILLS, QUALITY
from tests.damage import Damage, cut, cut_at_line, empty, fill_with_zeros, flip_bit, remove
from tests.fixtures.kept_lake import unpack
from tests.s3 import S3

DAMAGES = (empty, cut, cut_at_line, fill_with_zeros, flip_bit, remove)
COMMITS = 9
#: The checkpoint is of this version; those of the commits before it are deleted after 30 days.
CHECKPOINT = 5
NOON = datetime(2026, 4, 1, 12, tzinfo=UTC)


def log_file(version: int) -> str:
    return f"{DRILLS.path}/{LOG_FOLDER}/{version:020}.json"


CHECKPOINT_FILE = log_file(CHECKPOINT).replace(".json", ".checkpoint.parquet")
HINT = f"{DRILLS.path}/{LOG_FOLDER}/_last_checkpoint"
FILES = (
    HINT,
    CHECKPOINT_FILE,
    *(log_file(version) for version in range(COMMITS + 1)),
    version_file(DRILLS),
)


def make_row(number: int) -> dict[str, Any]:
    row = dict.fromkeys(DRILLS.column_names)
    return row | {"drill_id": f"d{number}", "began": NOON + timedelta(minutes=number)}


def read_ids(lake: Path) -> list[str]:
    return sorted(row["drill_id"] for row in TableStore(str(lake), DRILLS).rows())


ALL_IDS = sorted(f"d{number}" for number in range(COMMITS))


def make_whole_lake(lake: Path) -> Path:
    """Write a table of nine commits of a row each."""
    store = TableStore(str(lake), DRILLS, create=True)
    for number in range(COMMITS):
        store.append([make_row(number)])
        if store.version == CHECKPOINT:
            DeltaTable(str(lake / DRILLS.path)).create_checkpoint()
    assert read_ids(lake) == ALL_IDS
    return lake


@pytest.fixture(scope="module")
def whole_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_whole_lake(tmp_path_factory.mktemp("whole") / "lake")


@pytest.fixture
def lake(whole_lake: Path, tmp_path: Path) -> Path:
    copytree(whole_lake, tmp_path / "lake")
    return tmp_path / "lake"


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("file", FILES)
def test_a_damaged_file_loses_no_row_or_is_named(lake: Path, file: str, damage: Damage) -> None:
    damage(lake / file)
    repaired = repair_or_explain(lake)
    if repaired is RepairOutcome.WHOLE:
        assert read_ids(lake) == ALL_IDS
        return
    # What a writer repairs before it begins has lost nothing.
    copytree(lake, lake.with_name("written"))
    outcome = repair_before_writing(str(lake.with_name("written")), DRILLS).outcome
    assert outcome is repaired
    if repaired is RepairOutcome.REPAIRED:
        assert read_ids(lake.with_name("written")) == ALL_IDS
        return
    # What an operator accepts is the state before the damaged commit, and the table goes on from there.
    accepted = repair_table(str(lake), DRILLS, accepts_loss=True)
    assert accepted.outcome is RepairOutcome.LOST
    assert "later changes are lost" not in accepted.detail
    left = read_ids(lake)
    assert len(left) < COMMITS
    assert set(left) < set(ALL_IDS)
    if damage is not cut_at_line:
        # Which commit lacks a line cannot be seen, so that the later ones stay.
        assert left == [f"d{number}" for number in range(len(left))]
    TableStore(str(lake), DRILLS).append([make_row(COMMITS)])
    assert read_ids(lake) == sorted([*left, f"d{COMMITS}"])


def repair_or_explain(lake: Path) -> RepairOutcome:
    """Return what a dry run says; it agrees with what a reader gets, which is all rows or one line."""
    dry_run = repair_table(str(lake), DRILLS, accepts_loss=False, dry_run=True)
    if dry_run.outcome is RepairOutcome.WHOLE:
        assert read_ids(lake) == ALL_IDS
    else:
        with pytest.raises(TableStoreError, match=r"^[^\n]+run `fleetgauge lake repair`$"):
            read_ids(lake)
        assert dry_run.detail
    return dry_run.outcome


def find_outcomes(whole_lake: Path, folder: Path, file: str) -> set[RepairOutcome]:
    """Return the outcomes of all damages but a flipped bit, which may be in a place that does not matter."""
    outcomes = set()
    for damage in DAMAGES:
        if damage is not flip_bit:
            lake = folder / damage.__name__
            copytree(whole_lake, lake)
            damage(lake / file)
            outcomes.add(repair_or_explain(lake))
    return outcomes


@pytest.mark.parametrize(
    ("file", "outcome"),
    [
        (HINT, RepairOutcome.WHOLE),
        (version_file(DRILLS), RepairOutcome.WHOLE),
        (CHECKPOINT_FILE, RepairOutcome.REPAIRED),
        (log_file(CHECKPOINT), RepairOutcome.WHOLE),
        (log_file(CHECKPOINT + 1), RepairOutcome.DAMAGED),
        (log_file(COMMITS), RepairOutcome.DAMAGED),
    ],
)
def test_the_outcome_depends_on_the_file_alone(
    whole_lake: Path, tmp_path: Path, file: str, outcome: RepairOutcome
) -> None:
    """As docs/operations/lake.md says."""
    assert find_outcomes(whole_lake, tmp_path, file) == {outcome}


@pytest.mark.parametrize("seed", range(40))
def test_a_checkpoint_is_repaired_wherever_it_is_damaged(lake: Path, seed: int) -> None:
    file, random = lake / CHECKPOINT_FILE, Random(seed)
    content = bytearray(file.read_bytes())
    start = random.randrange(len(content))
    length = random.choice([1, 1, 64, 512])
    content[start : start + length] = random.randbytes(len(content[start : start + length]))
    file.write_bytes(content)
    outcome = repair_or_explain(lake)
    assert outcome in (RepairOutcome.WHOLE, RepairOutcome.REPAIRED)
    repair_before_writing(str(lake), DRILLS)
    assert read_ids(lake) == ALL_IDS


def test_a_table_of_a_newer_version_of_delta_is_left_as_it_is(lake: Path) -> None:
    protocol: dict[str, Any] = {"minReaderVersion": 3, "minWriterVersion": 7}
    protocol |= {"readerFeatures": ["unheardOf"], "writerFeatures": ["unheardOf"]}
    (lake / log_file(COMMITS + 1)).write_text(json.dumps({"protocol": protocol}) + "\n")
    before = sorted(path.name for path in (lake / DRILLS.path / LOG_FOLDER).iterdir())
    for accepts_loss in (False, True):
        assert repair_table(str(lake), DRILLS, accepts_loss=accepts_loss).outcome is RepairOutcome.DAMAGED
    assert sorted(path.name for path in (lake / DRILLS.path / LOG_FOLDER).iterdir()) == before


def test_a_file_that_is_damaged_again_does_not_replace_the_first_one(lake: Path) -> None:
    for attempt in (1, 2):
        (lake / log_file(COMMITS)).write_bytes(b"{" * attempt)
        assert repair_table(str(lake), DRILLS, accepts_loss=True).outcome is RepairOutcome.LOST
    kept = sorted((lake / DRILLS.path / LOG_FOLDER).glob("_damaged-*.json"))
    assert sorted(path.stat().st_size for path in kept) == [1, 2]


def test_reading_creates_no_folder(tmp_path: Path) -> None:
    assert open_table(f"file://{tmp_path}/typing-error", DRILLS) is None
    assert list(tmp_path.iterdir()) == []


def test_a_newest_commit_that_is_gone_is_noticed_by_the_stored_version_alone(lake: Path) -> None:
    remove(lake / log_file(COMMITS))
    with pytest.raises(TableStoreError, match=f"ends with version {COMMITS - 1}, but version {COMMITS} was"):
        read_ids(lake)
    remove(lake / version_file(DRILLS))
    assert len(read_ids(lake)) == COMMITS - 1


def test_an_empty_commit_is_noticed_where_no_version_is_stored(lake: Path) -> None:
    """A lake of an older version, or a writer that was killed between its commit and the second place."""
    remove(lake / version_file(DRILLS))
    assert read_ids(lake) == ALL_IDS
    empty(lake / log_file(COMMITS - 1))
    with pytest.raises(TableStoreError, match=f"{COMMITS - 1}.json is empty"):
        read_ids(lake)


def test_a_log_that_is_gone_is_not_a_new_table(lake: Path) -> None:
    remove(lake / DRILLS.path)
    store = TableStore(str(lake), DRILLS, create=True)
    for use in (store.rows, store.create, lambda: store.append([make_row(0)]), lambda: store.exists):
        with pytest.raises(TableStoreError, match="is gone, but version"):
            use()
    assert repair_table(str(lake), DRILLS, accepts_loss=False).outcome is RepairOutcome.DAMAGED
    assert repair_table(str(lake), DRILLS, accepts_loss=True).outcome is RepairOutcome.LOST
    store.append([make_row(0)])
    assert read_ids(lake) == ["d0"]


def test_a_table_whose_first_commit_is_damaged_begins_again_if_that_is_accepted(tmp_path: Path) -> None:
    store = TableStore(str(tmp_path), DRILLS, create=True)
    store.append([make_row(0)])
    cut(tmp_path / log_file(0))
    refused = repair_table(str(tmp_path), DRILLS, accepts_loss=False)
    assert (refused.outcome, "all rows of the table are lost" in refused.detail) == (
        RepairOutcome.DAMAGED,
        True,
    )
    assert repair_table(str(tmp_path), DRILLS, accepts_loss=True).outcome is RepairOutcome.LOST
    store.append([make_row(1)])
    assert read_ids(tmp_path) == ["d1"]


def test_a_table_that_replaces_another_one_is_not_compared_with_it(lake: Path, tmp_path: Path) -> None:
    TableStore(str(tmp_path / "other"), DRILLS, create=True).append([make_row(7)])
    remove(lake / DRILLS.path)
    copytree(tmp_path / "other" / DRILLS.path, lake / DRILLS.path)
    assert read_ids(lake) == ["d7"]


def test_a_version_from_the_future_is_reported(lake: Path) -> None:
    """The second place is newer than the table: its folder is of an older backup."""
    stored = decode_version((lake / version_file(DRILLS)).read_bytes())
    assert stored is not None
    newer = NewestVersion(stored.table_id, stored.version + 5, stored.files)
    (lake / version_file(DRILLS)).write_bytes(newer.encode())
    with pytest.raises(TableStoreError, match=f"version {stored.version + 5} was written"):
        read_ids(lake)
    assert repair_table(str(lake), DRILLS, accepts_loss=True).outcome is RepairOutcome.LOST
    assert read_ids(lake) == ALL_IDS


def test_a_store_of_the_second_place_that_fails_fails_no_commit(
    lake: Path, caplog: pytest.LogCaptureFixture
) -> None:
    remove(lake / "_versions")
    (lake / "_versions").write_text("not a folder")
    TableStore(str(lake), DRILLS).append([make_row(COMMITS)])
    assert len(read_ids(lake)) == COMMITS + 1
    assert "the version of a commit cannot be stored, and its loss might not be noticed" in caplog.text


@pytest.mark.parametrize("damage", [empty, cut, fill_with_zeros, remove], ids=lambda damage: damage.__name__)
def test_a_damaged_data_file_is_named_and_dropped_if_its_loss_is_accepted(lake: Path, damage: Damage) -> None:
    data = sorted((lake / DRILLS.path).glob("*.parquet"))
    damage(data[0])
    with pytest.raises(TableStoreError, match="run `fleetgauge lake repair`"):
        read_ids(lake)
    refused = repair_table(str(lake), DRILLS, accepts_loss=False)
    assert (refused.outcome, data[0].name in refused.detail) == (RepairOutcome.DAMAGED, True)
    assert repair_table(str(lake), DRILLS, accepts_loss=True).outcome is RepairOutcome.LOST
    assert len(read_ids(lake)) == COMMITS - 1
    assert repair_table(str(lake), DRILLS, accepts_loss=False).outcome is RepairOutcome.WHOLE


@pytest.mark.parametrize("damage", [empty, cut, fill_with_zeros, remove], ids=lambda damage: damage.__name__)
def test_a_writer_goes_on_without_the_damaged_rows_of_its_own_progress(
    tmp_path: Path, damage: Damage
) -> None:
    progress = replace(DRILLS, path="_checkpoints/progress")
    store = TableStore(str(tmp_path), progress, create=True)
    for number in range(2):
        store.append([make_row(number)])
    assert repair_before_writing(str(tmp_path), progress).outcome is RepairOutcome.WHOLE
    damage(min((tmp_path / progress.path).glob("*.parquet")))
    repair = repair_before_writing(str(tmp_path), progress)
    assert repair.outcome is RepairOutcome.LOST
    assert ".parquet " in repair.detail
    assert len(store.rows()) == 1
    store.append([make_row(2)])
    assert len(store.rows()) == 2


@pytest.mark.parametrize("error", [OSError("503"), PermissionError("403"), TimeoutError("late")])
def test_a_store_that_does_not_answer_damages_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    """Also in the moment in which a file was found damaged."""
    progress = replace(DRILLS, path="_checkpoints/progress")
    store = TableStore(str(tmp_path), progress, create=True)
    for number in range(2):
        store.append([make_row(number)])
    first, second = sorted((tmp_path / progress.path).glob("*.parquet"))
    content = first.read_bytes()
    fill_with_zeros(first)
    read = FolderFiles.read

    def fail(files: FolderFiles, path: str) -> bytes | None:
        if path.endswith(second.name):
            raise error
        return read(files, path)

    monkeypatch.setattr(FolderFiles, "read", fail)
    for _ in range(2):
        with pytest.raises(OSError, match=str(error)):
            repair_before_writing(str(tmp_path), progress)
    first.write_bytes(content)
    assert len(store.rows()) == 2


def test_text_that_is_none_is_damage(tmp_path: Path) -> None:
    """A flipped bit leaves a Parquet file whole, and its text no UTF-8."""
    progress = replace(DRILLS, path="_checkpoints/progress")
    store = TableStore(str(tmp_path), progress, create=True)
    store.append([make_row(0)])
    (file,) = (tmp_path / progress.path).glob("*.parquet")
    table = pq.read_table(file)
    spoilt = table.set_column(0, "drill_id", pa.array([b"\xff\xff"]).view(pa.string()))
    pq.write_table(spoilt, file)
    size = file.stat().st_size
    log = next((tmp_path / progress.path / LOG_FOLDER).glob("*1.json"))
    log.write_text(re.sub(r'"size":\d+', f'"size":{size}', log.read_text()))
    assert repair_before_writing(str(tmp_path), progress).outcome is RepairOutcome.LOST
    assert store.rows() == []


def test_the_tables_that_spark_wrote_are_repaired_with_their_checksum_files(tmp_path: Path) -> None:
    """Hadoop refuses a file whose checksum file belongs to another one."""
    kept_lake = unpack(tmp_path)
    log = kept_lake.path / QUALITY.path / LOG_FOLDER
    newest = max(path.name for path in log.glob("*.json"))
    rows = len(kept_lake.rows(QUALITY))
    empty(log / newest)
    assert repair_table(str(kept_lake.path), QUALITY, accepts_loss=True).outcome is RepairOutcome.LOST
    assert {path.name for path in log.glob(f"*{newest[:20]}*")} == {
        f"_damaged-{newest}",
        f"_damaged-.{newest}.crc",
        f"_damaged-{newest[:20]}.crc",
        f"_damaged-.{newest[:20]}.crc.crc",
    }
    assert len(kept_lake.rows(QUALITY)) < rows


def test_a_table_in_an_object_store_is_checked_and_repaired_alike(
    whole_lake: Path, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    s3.make_bucket("damaged")
    s3.upload(whole_lake, "damaged/lake")
    store = TableStore("s3://damaged/lake", DRILLS)
    store.append([make_row(COMMITS)])
    files = open_files("s3://damaged/lake")
    files.write(CHECKPOINT_FILE, b"PAR1")
    assert repair_before_writing("s3://damaged/lake", DRILLS).outcome is RepairOutcome.REPAIRED
    assert len(store.rows()) == COMMITS + 1
    files.write(log_file(COMMITS + 1), b"")
    with pytest.raises(TableStoreError, match=f"{COMMITS + 1}.json is empty"):
        store.rows()
    assert repair_table("s3://damaged/lake", DRILLS, accepts_loss=True).outcome is RepairOutcome.LOST
    assert len(store.rows()) == COMMITS
