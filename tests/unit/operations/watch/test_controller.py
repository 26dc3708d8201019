"""The watch before it has a telemetry cluster."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_core.runtime.health_server import ProcessHealth
from fleetgauge_core.runtime.shutdown import ShutdownFlag
from fleetgauge_operations.watch import controller
from fleetgauge_operations.watch.controller import WatchController
from fleetgauge_operations.watch.metrics import WatchMetrics
from fleetgauge_operations.watch.watched_fleet import WatchedFleet
from tests.exposition import samples_of
from tests.unit.core.detection.pulses import NOON
from tests.waiting import wait_until

DEADLINE_S = 30


def test_a_watch_waits_until_the_secret_of_the_telemetry_cluster_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(*_: object) -> None:
        raise KafkaUnavailableError("connected")

    monkeypatch.setattr(controller, "keep_telemetry_topics", connect)
    secret, config = tmp_path / "password", tmp_path / "fleet.yaml"
    sasl = {"mechanism": "PLAIN", "username": "u", "password": {"file": str(secret)}}
    document = {
        "clusters": [{"id": "orders", "bootstrap": "nobody:1"}],
        "telemetry": {"bootstrap": "nobody:1", "security": {"sasl": sasl}},
    }
    config.write_text(json.dumps(document))
    health, shutdown = ProcessHealth("watch", 60), ShutdownFlag()
    watched, metrics = WatchedFleet(config, health.parts, time.monotonic), WatchMetrics(health.registry)
    telemetry = watched.load()

    def faulty_parts() -> list[tuple[str, ...]]:
        return list(samples_of(health.registry, "fleetgauge_part_faulty"))

    with ThreadPoolExecutor(1) as executor:
        run = executor.submit(
            WatchController(watched, telemetry, lambda: NOON, lambda _: None, health, metrics).run, shutdown
        )
        wait_until(lambda: bool(faulty_parts()), DEADLINE_S, "the report of the missing secret")
        assert (faulty_parts(), run.done()) == ([("telemetry", "telemetry", "credentials")], False)
        secret.write_text("word")
        with pytest.raises(KafkaUnavailableError, match="connected"):
            run.result(DEADLINE_S)
    assert faulty_parts() == []
