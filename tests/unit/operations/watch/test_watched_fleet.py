"""The fleet file of the watch, and the parts of it that cannot be used."""

import json
from pathlib import Path
from threading import Event

from fleetgauge_core.runtime.health_server import ProcessHealth
from fleetgauge_operations.watch.watched_fleet import WatchedFleet
from tests.exposition import samples_of

FAULTY = "fleetgauge_part_faulty"


def test_the_secrets_of_the_present_notifiers_are_checked(tmp_path: Path) -> None:
    config, secret, now_s = tmp_path / "fleet.yaml", tmp_path / "url", [0.0]
    document = {
        "telemetry": {"bootstrap": "nobody:1"},
        "clusters": [
            {"id": "orders", "bootstrap": "nobody:0"},
            {"id": "carts", "bootstrap": "a:1", "tier": "x"},
        ],
        "notifiers": [{"kind": "slack", "name": "oncall", "url_from": {"file": str(secret)}}],
    }
    config.write_text(json.dumps(document))
    health, stopped = ProcessHealth("watch", 60), Event()
    stopped.set()
    watched = WatchedFleet(config, health.parts, lambda: now_s[0])
    watched.load()
    watched.check_secrets(stopped)
    # The watch connects to no cluster, so that a bad address is none of its faults.
    assert [cluster.id for cluster in watched.fleet.clusters] == ["orders"]
    assert set(samples_of(health.registry, FAULTY)) == {
        ("carts", "cluster", "entry"),
        ("oncall", "notifier", "credentials"),
    }
    assert watched.may_list("carts")
    config.write_text(json.dumps(document | {"clusters": document["clusters"][:1], "notifiers": []}))
    for _ in range(3):
        watched.refresh()
        now_s[0] += 1.5
    watched.check_secrets(stopped)
    assert samples_of(health.registry, FAULTY) == {}
    assert (watched.generation, watched.may_list("carts")) == (1, False)
