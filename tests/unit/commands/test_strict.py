"""Processes that are told to end if a part cannot be used: one line and exit code 2."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fleetgauge_core.runtime.cli import main

COMMANDS = (("probe",), ("watch",), ("stream",), ("mitigate", "run"), ("recover", "run"))
SASL = {"mechanism": "PLAIN", "username": "u", "password": {"file": "absent"}}
CLUSTERS = [{"id": "orders", "bootstrap": "127.0.0.1:1"}, {"id": "carts", "bootstrap": "127.0.0.1:1"}]
FLEET: dict[str, Any] = {
    "telemetry": {"bootstrap": "127.0.0.1:1"},
    "clusters": CLUSTERS,
    "recovery": {"mirrors": [{"source": "orders", "destination": "carts"}]},
}
SECRET_OF_CLUSTER = {"clusters": [CLUSTERS[0], CLUSTERS[1] | {"security": {"sasl": SASL}}]}
SECRET_OF_TELEMETRY = {"telemetry": FLEET["telemetry"] | {"security": {"sasl": SASL}}}
SECRET_OF_NOTIFIER = {"notifiers": [{"kind": "slack", "url_from": {"env": "FLEETGAUGE_NONE"}}]}


def _run(folder: Path, command: tuple[str, ...], change: dict[str, Any]) -> str:
    config = folder / "fleet.yaml"
    config.write_text(json.dumps(FLEET | change), encoding="utf-8")
    result = CliRunner().invoke(main, [*command, "--config", str(config), "--strict"])
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    return line


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_bad_entry_ends_a_strict_process(tmp_path: Path, command: tuple[str, ...]) -> None:
    bad_cluster = {"clusters": [*CLUSTERS, {"id": "search", "bootstrap": "search:0"}]}
    assert "clusters.2.bootstrap" in _run(tmp_path, command, bad_cluster)
    assert "notifiers.0" in _run(tmp_path, command, {"notifiers": [{"kind": "webhook"}]})


@pytest.mark.parametrize(
    ("command", "change", "part"),
    [
        (("probe",), SECRET_OF_CLUSTER, "cluster carts"),
        (("probe",), SECRET_OF_TELEMETRY, "telemetry"),
        (("watch",), SECRET_OF_TELEMETRY, "telemetry"),
        (("watch",), SECRET_OF_NOTIFIER, "notifier slack"),
        (("stream",), SECRET_OF_TELEMETRY, "telemetry"),
        (("mitigate", "run"), SECRET_OF_CLUSTER, "cluster carts"),
        (("mitigate", "run"), SECRET_OF_NOTIFIER, "notifier slack"),
        (("recover", "run"), SECRET_OF_CLUSTER, "cluster carts"),
        (("recover", "run"), SECRET_OF_NOTIFIER, "notifier slack"),
    ],
)
def test_an_unreadable_secret_ends_a_strict_process(
    tmp_path: Path, command: tuple[str, ...], change: dict[str, Any], part: str
) -> None:
    line = _run(tmp_path, command, change)
    assert line.startswith(f"fleetgauge: {part}")
    assert "absent cannot be read: No such file" in line or "FLEETGAUGE_NONE is not set" in line
