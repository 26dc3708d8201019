"""Files of incidents: written, read, and damaged."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_operations.replay.incident import Incident, IncidentError
from tests.unit.operations.replay.sample_incidents import build_hang_pulses, build_incident

HANG = build_incident(build_hang_pulses(), note="disk full, überfüllt")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "hang.incident.gz"


def test_a_written_incident_is_read_back_unchanged(path: Path) -> None:
    assert len(HANG.expected) == 2
    HANG.write(path)
    assert Incident.read(path) == HANG


def test_equal_incidents_give_equal_files(path: Path, tmp_path: Path) -> None:
    HANG.write(path)
    HANG.write(tmp_path / "again")
    assert path.read_bytes() == (tmp_path / "again").read_bytes()


def test_a_file_that_is_not_an_incident_is_refused(path: Path) -> None:
    with pytest.raises(IncidentError, match="No such file"):
        Incident.read(path)
    path.write_text("pulses")
    with pytest.raises(IncidentError, match="not an incident"):
        Incident.read(path)


def test_a_newer_format_is_refused(path: Path) -> None:
    HANG.write(path)
    first, *lines = gzip.decompress(path.read_bytes()).decode().split("\n")
    newer = json.dumps(json.loads(first) | {"fleetgauge_incident": 2})
    path.write_bytes(gzip.compress("\n".join([newer, *lines]).encode()))
    with pytest.raises(IncidentError, match="newer version"):
        Incident.read(path)


def _read_error(path: Path) -> str:
    """Return the error message for a file, empty if it can be read."""
    try:
        Incident.read(path)
    except IncidentError as error:
        return str(error)
    return ""


@given(cut=st.integers(0, 10**6), position=st.integers(0, 10**6), noise=st.binary(max_size=20))
def test_any_damage_is_reported_in_one_line(
    cut: int, position: int, noise: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("damaged") / "hang"
    HANG.write(path)
    content = path.read_bytes()
    path.write_bytes(content[: cut % len(content)])
    assert "\n" not in _read_error(path) != ""
    text = gzip.decompress(content)
    position %= len(text)
    path.write_bytes(gzip.compress(text[:position] + noise + text[position + len(noise) :]))
    assert "\n" not in _read_error(path)
