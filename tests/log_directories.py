"""Brokers with two log directories, of which one can be lost or emptied."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fleetgauge_local import provisioning


@contextmanager
def two_log_directories() -> Iterator[None]:
    """Give the brokers of fleets created within the block a second log directory."""
    original = provisioning.build_server_properties

    def with_second(layout: Any, cluster: Any, placement: Any, data: Path) -> dict[str, str]:
        second = data.with_name("second")
        second.mkdir(exist_ok=True)
        meta = {
            "version": "1",
            "cluster.id": layout.kafka_uuids[cluster.id],
            "node.id": str(placement.broker),
            "directory.id": provisioning.generate_kafka_uuid(),
        }
        (second / "meta.properties").write_text(provisioning.render(meta))
        settings = {"log.dirs": f"{data},{second}", "log.flush.offset.checkpoint.interval.ms": "5000"}
        return original(layout, cluster, placement, data) | settings

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(provisioning, "build_server_properties", with_second)
        yield


def lose_directory(directory: Path) -> None:
    """Take a log directory away from a broker that runs, as a disk does that fails."""
    directory.rename(directory.with_name(f"{directory.name}-lost"))
    directory.write_text("no directory")
