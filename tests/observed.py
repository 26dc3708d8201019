"""A real cluster that `fleetgauge observe` looks at, and what it publishes."""

import json
import socket
import struct
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from confluent_kafka.admin import AdminClient
from kafka.protocol.admin import (
    AlterClientQuotasRequest,
    AlterPartitionReassignmentsRequest,
    IncrementalAlterConfigsRequest,
    UpdateFeaturesRequest,
)

from fleetgauge_core.contract import ClusterChange
from fleetgauge_core.contract.change_document import change_document
from fleetgauge_core.fleet import ClusterAccess, Fleet, load_fleet
from fleetgauge_core.kafka import ClusterAdmin
from fleetgauge_core.kafka.directed_client import DirectedClient
from fleetgauge_core.metadata import TopicPartition
from fleetgauge_local.fleet import LocalFleet
from fleetgauge_operations.changes.change_topic import read_change_records
from tests.exposition import samples
from tests.ports import free_port
from tests.waiting import wait_until

DEADLINE_S = 90
_TIMEOUT_S = 10
_LOOK = "fleetgauge_observe_look_timestamp_seconds"
_UNREGISTER_BROKER = 64

Document = Mapping[str, Any]


@dataclass(frozen=True)
class ObservedCluster:
    """A cluster of a local fleet, and the process that observes it."""

    local: LocalFleet
    fleet: Fleet
    cluster_id: str
    config: Path
    log: Path
    port: int
    process: "subprocess.Popen[bytes]"
    client: AdminClient
    """For what ClusterAdmin does not offer."""

    @property
    def admin(self) -> ClusterAdmin:
        """A started admin client."""
        admin = ClusterAdmin(self.fleet.cluster(self.cluster_id).access, _TIMEOUT_S)
        admin.start()
        return admin

    def request(self, request: Any, broker_id: int = 1) -> Any:
        """Send any request to a broker."""
        return send_request(self.fleet.cluster(self.cluster_id).access, request, broker_id)

    def set_default(self, name: str, value: str | None) -> None:
        """Set or remove (None) a default of all brokers."""
        set_, delete = 0, 1
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource
        response = self.request(
            IncrementalAlterConfigsRequest(
                resources=[
                    resource(
                        resource_type=4,
                        resource_name="",
                        configs=[
                            resource.AlterableConfig(
                                name=name, config_operation=delete if value is None else set_, value=value
                            )
                        ],
                    )
                ],
                validate_only=False,
            )
        )
        assert not response.responses[0].error_code, response

    def set_quota(self, user: str, values: Mapping[str, float | None]) -> None:
        """Set or remove (None) client quotas of a user."""
        entry = AlterClientQuotasRequest.EntryData
        response = self.request(
            AlterClientQuotasRequest(
                entries=[
                    entry(
                        entity=[entry.EntityData(entity_type="user", entity_name=user)],
                        ops=[
                            entry.OpData(key=key, value=value or 0.0, remove=value is None)
                            for key, value in values.items()
                        ],
                    )
                ],
                validate_only=False,
            )
        )
        assert not response.entries[0].error_code, response

    def set_feature_level(self, name: str, level: int) -> None:
        """Set the finalized level of a feature; 0 removes it."""
        update = UpdateFeaturesRequest.FeatureUpdateKey
        safe_downgrade = 2
        response = self.request(
            UpdateFeaturesRequest(
                timeout_ms=5000,
                feature_updates=[
                    update(
                        feature=name,
                        max_version_level=level,
                        allow_downgrade=True,
                        upgrade_type=1 if level else safe_downgrade,
                    )
                ],
                validate_only=False,
            )
        )
        assert not response.error_code, response

    def reassign(self, replicas: Mapping[TopicPartition, Sequence[int] | None]) -> None:
        """Reassign partitions of one topic to these replicas; None cancels the reassignment."""
        reassign(self.fleet.cluster(self.cluster_id).access, replicas)

    def unregister(self, broker_id: int) -> None:
        """Unregister a broker that is gone (KIP-631); neither client library has the request."""
        host, _, port = self.local.bootstrap(self.cluster_id).split(",")[0].rpartition(":")
        header = struct.pack(">hhih", _UNREGISTER_BROKER, 0, 1, 5) + b"tests" + b"\0"
        frame = header + struct.pack(">i", broker_id) + b"\0"
        with socket.create_connection((host, int(port)), _TIMEOUT_S) as connection:
            connection.sendall(struct.pack(">i", len(frame)) + frame)
            (size,) = struct.unpack(">i", connection.recv(4))
            body = connection.recv(size)
        # Correlation ID, tags, throttle time, error code.
        assert struct.unpack(">h", body[9:11]) == (0,), body

    def read(self) -> list[Document]:
        """Return all records so far, in the order in which they were written."""
        assert self.fleet.telemetry
        return [change_document(record) for record in self.read_records()]

    def read_records(self) -> tuple[ClusterChange, ...]:
        assert self.fleet.telemetry
        return tuple(
            record
            for record in read_change_records(self.fleet.telemetry)
            if record.cluster_id == self.cluster_id
        )

    def since(self, at: datetime) -> list[Document]:
        """Return the records of what was seen after a time."""
        return [change_document(record) for record in self.read_records() if record.at >= at]

    def expect(self, at: datetime, **values: Any) -> Document:
        """Wait for a record that was seen after a time and has these values, and return it."""
        matching: list[Document] = []

        def is_recorded() -> bool:
            matching[:] = [
                document
                for document in self.since(at)
                if all(document[name] == value for name, value in values.items())
            ]
            return bool(matching)

        try:
            wait_until(is_recorded, DEADLINE_S, f"a change with {values}", every_s=0.5)
        except TimeoutError as error:
            kinds = [(document["kind"], document["phase"]) for document in self.since(at)]
            raise AssertionError(f"{error}; there are {kinds}\n{self.log.read_text()[-3000:]}") from error
        return matching[0]

    def wait_for_look(self, looks: int = 1) -> None:
        """Wait until the cluster has been looked at so many times after now."""
        for _ in range(looks):
            self._wait_for_look_after(time.time())

    def _wait_for_look_after(self, began_s: float) -> None:
        wait_until(lambda: self.looked_at() > began_s, DEADLINE_S, "a look at the cluster")

    def looked_at(self) -> float:
        with suppress(OSError):
            text = urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5).read().decode()
            return samples(text, _LOOK).get((self.cluster_id,), 0.0)
        return 0.0


def send_request(access: ClusterAccess, request: Any, broker_id: int = 1) -> Any:
    """Send any request to a broker of a cluster."""
    client = DirectedClient(access, "tests", _TIMEOUT_S)
    client.connect()
    try:
        return client.request(broker_id, request)
    finally:
        client.close()


def reassign(access: ClusterAccess, replicas: Mapping[TopicPartition, Sequence[int] | None]) -> None:
    """Reassign partitions of one topic of a cluster to these replicas; None cancels the reassignment."""
    (topic,) = {partition.topic for partition in replicas}
    kind = AlterPartitionReassignmentsRequest.ReassignableTopic
    response = send_request(
        access,
        AlterPartitionReassignmentsRequest(
            timeout_ms=5000,
            allow_replication_factor_change=True,
            topics=[
                kind(
                    name=topic,
                    partitions=[
                        kind.ReassignablePartition(
                            partition_index=partition.partition,
                            replicas=None if listed is None else list(listed),
                        )
                        for partition, listed in replicas.items()
                    ],
                )
            ],
        ),
    )
    errors = [partition.error_code for topic in response.responses for partition in topic.partitions]
    assert (response.error_code, [code for code in errors if code]) == (0, []), response


def now() -> datetime:
    """Return the present time."""
    return datetime.now(UTC)


def start_observer(local: LocalFleet, folder: Path, cluster_id: str) -> ObservedCluster:
    """Start `fleetgauge observe` for a cluster of a fleet; whoever calls ends its process."""
    folder.mkdir(parents=True, exist_ok=True)
    config, log, port = folder / "fleet.yaml", folder / "observe.log", free_port()
    document = yaml.safe_load(local.fleet_file.read_text())
    document["lake"] = str(folder / "lake")
    config.write_text(yaml.safe_dump(document))
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "fleetgauge_core", "observe", "--config", str(config)),
                *("--listen", f"127.0.0.1:{port}", "--json"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    client = AdminClient({"bootstrap.servers": local.bootstrap(cluster_id), "log_level": 0})
    return ObservedCluster(local, load_fleet(config), cluster_id, config, log, port, process, client)


@contextmanager
def observing(local: LocalFleet, folder: Path, cluster_id: str) -> Iterator[ObservedCluster]:
    """Run `fleetgauge observe` for a cluster of a fleet; it has looked at it once when the block begins."""
    cluster = start_observer(local, folder, cluster_id)
    process, log = cluster.process, cluster.log
    try:
        cluster.wait_for_look()
        yield cluster
        process.terminate()
        assert process.wait(DEADLINE_S) == 0, log.read_text()[-3000:]
        assert json.loads(log.read_text().splitlines()[-1])["clusters"]
        assert "Traceback" not in log.read_text(), log.read_text()[-3000:]
    finally:
        process.kill()
        process.wait()
