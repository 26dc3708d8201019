import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_operations.replay.incident import Incident, IncidentError
from tests.unit.operations.replay.stories import hang, incident

HANG = incident(hang(), note="disk full, übervoll")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "hang.incident.gz"


def test_it_comes_back_as_it_was(path: Path) -> None:
    assert len(HANG.wanted) == 2
    HANG.write(path)
    assert Incident.read(path) == HANG


def test_the_same_incident_is_the_same_file(path: Path, tmp_path: Path) -> None:
    HANG.write(path)
    HANG.write(tmp_path / "again")
    assert path.read_bytes() == (tmp_path / "again").read_bytes()


def test_what_is_none_is_told_so(path: Path) -> None:
    with pytest.raises(IncidentError, match="No such file"):
        Incident.read(path)
    path.write_text("pulses")
    with pytest.raises(IncidentError, match="not an incident"):
        Incident.read(path)


def test_a_newer_format_is_not_guessed_at(path: Path) -> None:
    HANG.write(path)
    first, *lines = gzip.decompress(path.read_bytes()).decode().split("\n")
    newer = json.dumps(json.loads(first) | {"fleetgauge_incident": 2})
    path.write_bytes(gzip.compress("\n".join([newer, *lines]).encode()))
    with pytest.raises(IncidentError, match="newer version"):
        Incident.read(path)


def _is_told(path: Path) -> str:
    """What is said of a file, nothing if it can be read."""
    try:
        Incident.read(path)
    except IncidentError as error:
        return str(error)
    return ""


@given(cut=st.integers(0, 10**6), place=st.integers(0, 10**6), noise=st.binary(max_size=20))
def test_damage_is_one_line_whatever_it_is(
    cut: int, place: int, noise: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("damaged") / "one"
    HANG.write(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: cut % len(whole)])
    assert "\n" not in _is_told(path) != ""
    text = gzip.decompress(whole)
    place %= len(text)
    path.write_bytes(gzip.compress(text[:place] + noise + text[place + len(noise) :]))
    assert "\n" not in _is_told(path)
