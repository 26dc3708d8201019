"""Paths of a lake: what delta-rs cannot use is refused in one line, before it takes another folder."""

from pathlib import Path

import pytest

from fleetgauge_core.errors import OperationalError
from fleetgauge_core.lake.delta_table import DELTA_ERRORS, open_table, table_exists, table_uri
from fleetgauge_core.lake.table_store import TableStore
from fleetgauge_core.tables import CORRECTIONS


@pytest.mark.parametrize("name", ["a b", "ä", "100%", "a#b?c", "'b' \"c\"", "a+b&c=d", "{a},~;:*<>"])
def test_a_lake_may_have_a_path_with_such_characters(tmp_path: Path, name: str) -> None:
    lake = str(tmp_path / name)
    assert TableStore(lake, CORRECTIONS).create()
    assert TableStore(lake, CORRECTIONS).rows() == []
    assert table_exists(lake, CORRECTIONS)
    assert (tmp_path / name / CORRECTIONS.path / "_delta_log").is_dir()


@pytest.mark.parametrize("name", ["100%25", "%41", "[a]", "a|b", "`a`", "a\\b", "a\tb"])
def test_a_path_that_delta_rs_takes_for_another_one_is_refused(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / name)
    for lake in (str(tmp_path / name), "lake"):
        with pytest.raises(DELTA_ERRORS, match="the path of a lake cannot contain"):
            open_table(lake, CORRECTIONS)
        with pytest.raises(OperationalError, match="the path of a lake cannot contain"):
            TableStore(lake, CORRECTIONS)
    assert table_uri("s3://bucket/%41", CORRECTIONS) == f"s3://bucket/%41/{CORRECTIONS.path}"


def test_a_file_is_no_lake(tmp_path: Path) -> None:
    (tmp_path / "lake").touch()
    with pytest.raises(NotADirectoryError):
        open_table(str(tmp_path / "lake"), CORRECTIONS)
