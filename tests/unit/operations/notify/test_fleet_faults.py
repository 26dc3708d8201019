"""The report of what a process cannot use of the fleet file."""

import json
from pathlib import Path

import pytest

from fleetgauge_core.fleet import FleetFileError, Notifier, SecretError
from fleetgauge_core.runtime.health_server import ProcessHealth
from fleetgauge_operations.notify.fleet_faults import FleetFaults, load_reported_fleet
from tests.exposition import samples_of

NAME = "fleetgauge_part_faulty"


def _notifier(secret: Path) -> Notifier:
    return Notifier.model_validate({"kind": "slack", "url_from": {"file": str(secret)}})


def test_a_notifier_is_faulty_until_its_secret_can_be_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    health, secret = ProcessHealth("recover", 60), tmp_path / "url"
    faults = FleetFaults({}, [_notifier(secret), Notifier(kind="webhook", url="http://hook")], health.parts)
    with pytest.raises(SecretError, match=r"^notifier slack \w{6}: slack: the secret in"):
        faults.require_none()
    faults.update()
    ((name, part, reason),) = samples_of(health.registry, NAME)
    assert (name[:5], part, reason) == ("slack", "notifier", "credentials")
    assert "cannot be read: No such file or directory; provide it: until then" in caplog.text
    secret.write_text("https://hooks.example/hunter2")
    faults.update()
    faults.require_none()
    assert samples_of(health.registry, NAME) == {}
    assert "hunter2" not in caplog.text


def test_bad_entries_are_reported_unless_the_process_is_strict(tmp_path: Path) -> None:
    path, health = tmp_path / "fleet.yaml", ProcessHealth("mitigate", 60)
    clusters = [{"id": "orders", "bootstrap": "orders:1"}, {"id": "carts", "bootstrap": "carts:0"}]
    path.write_text(json.dumps({"clusters": clusters, "notifiers": [{"kind": "smoke"}]}))
    loaded = load_reported_fleet(path, health.parts, strict=False)
    assert [cluster.id for cluster in loaded.fleet.clusters] == ["orders"]
    assert samples_of(health.registry, NAME) == {
        ("carts", "cluster", "entry"): 1,
        ("notifiers.0", "notifier", "entry"): 1,
    }
    with pytest.raises(FleetFileError, match=r"clusters\.1\.bootstrap"):
        load_reported_fleet(path, health.parts, strict=True)
