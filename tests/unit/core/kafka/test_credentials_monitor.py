from pathlib import Path

import pytest

from fleetgauge_core.fleet import ClusterAccess, Security
from fleetgauge_core.kafka import CredentialsUnreadableError, credentials_monitor
from fleetgauge_core.kafka.credentials_monitor import CredentialsMonitor, require_readable_credentials


def _access(password: Path) -> ClusterAccess:
    sasl = {"mechanism": "PLAIN", "username": "u", "password": {"file": str(password)}}
    return ClusterAccess("nobody:1", Security.model_validate({"sasl": sasl}))


def test_unreadable_credentials_are_found_until_they_can_be_read(tmp_path: Path) -> None:
    monitor, accesses = CredentialsMonitor(), {"a": _access(tmp_path / "a"), "b": ClusterAccess("nobody:1")}
    assert monitor.find_unreadable(accesses) == {
        "a": f"nobody:1: the secret in {tmp_path / 'a'} cannot be read: No such file or directory"
    }
    with pytest.raises(CredentialsUnreadableError, match=r"^cluster a: nobody:1: the secret"):
        require_readable_credentials(accesses["b"], accesses)
    with pytest.raises(CredentialsUnreadableError, match=r"^telemetry: nobody:1: the secret"):
        require_readable_credentials(accesses["a"], {})
    (tmp_path / "a").write_text("word")
    assert monitor.find_unreadable(accesses) == {}
    require_readable_credentials(accesses["a"], accesses)
    (tmp_path / "a").unlink()
    assert list(monitor.find_unreadable(accesses)) == ["a"]


def test_readable_credentials_are_read_again_only_when_a_file_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    monkeypatch.setattr(
        credentials_monitor, "ensure_credentials_readable", lambda access: read.append(access.bootstrap)
    )
    (tmp_path / "a").write_text("word")
    monitor, accesses = CredentialsMonitor(), {"a": _access(tmp_path / "a")}
    for _ in range(3):
        monitor.find_unreadable(accesses)
    assert len(read) == 1
    (tmp_path / "b").write_text("another")
    (tmp_path / "b").replace(tmp_path / "a")
    monitor.find_unreadable(accesses)
    assert len(read) == 2
