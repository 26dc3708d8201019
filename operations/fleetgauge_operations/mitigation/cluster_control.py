"""Changes to a real cluster through its admin API and its restart command."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from tempfile import TemporaryFile

from fleetgauge_core.fleet import Cluster, Telemetry
from fleetgauge_core.kafka import (
    FOLLOWER_THROTTLED_RATE,
    FOLLOWER_THROTTLED_REPLICAS,
    ClusterAdmin,
    KafkaRequestRejectedError,
    KafkaUnavailableError,
    reorder_replicas,
    write_demotion_mark,
)
from fleetgauge_core.metadata import TopicPartition
from fleetgauge_operations.mitigation.plan.demotion import ReplicaOrder
from fleetgauge_operations.mitigation.steps import RestartCommandError

#: For all replicas of a broker together; it stays out of the ISR only while more than this is produced.
_THROTTLED_RATE_BYTES_S = "10000"
_RESTART_TIMEOUT_S = 300


@dataclass(frozen=True, slots=True)
class KafkaClusterControl:
    """Changes a cluster through its admin API and its restart command; see steps.ClusterControl."""

    cluster: Cluster
    telemetry: Telemetry
    clock: Callable[[], datetime]

    def set_demotion_mark(self, broker_id: int, *, demoted: bool) -> None:
        """Store in the telemetry cluster whether the broker is demoted."""
        write_demotion_mark(self.telemetry, self.cluster.id, broker_id, demoted, self.clock())

    def reorder_replicas(
        self,
        orders: Mapping[TopicPartition, Sequence[int]],
        expected: Mapping[TopicPartition, ReplicaOrder],
    ) -> None:
        """Reassign the partitions to the same replicas in another order."""
        if orders and not reorder_replicas(self.cluster.access, orders, expected):
            raise KafkaUnavailableError("a reassignment is in progress")

    def elect_preferred_leaders(self, partitions: Iterable[TopicPartition]) -> None:
        """Elect the first replicas as leaders; no request is sent for no partitions."""
        to_elect = list(partitions)
        if to_elect:
            self._connect_admin().elect_preferred_leaders(to_elect)

    def throttle_replication(self, broker_id: int, replicas: Mapping[str, str]) -> None:
        """Throttle the broker to 10 kB/s. Raises: KafkaUnavailableError if it has another throttle."""
        admin = self._connect_admin()
        present_rate = admin.read_broker_setting(broker_id, FOLLOWER_THROTTLED_RATE)
        if present_rate not in (None, _THROTTLED_RATE_BYTES_S):
            raise KafkaUnavailableError(
                f"replication to broker {broker_id} is already throttled to {present_rate} B/s"
            )
        # The rate comes first, because throttled replicas without a rate are not slowed.
        admin.set_broker_setting(broker_id, FOLLOWER_THROTTLED_RATE, _THROTTLED_RATE_BYTES_S)
        for topic, value in replicas.items():
            admin.set_topic_setting(topic, FOLLOWER_THROTTLED_REPLICAS, value)

    def remove_throttle(self, broker_id: int, replicas: Mapping[str, str], *, registered: bool) -> bool:
        """Remove those settings of the throttle that still have the values that were set.

        Returns: False if the broker, which alone knows its rate, does not answer.
        """
        admin = self._connect_admin()
        for topic, value in replicas.items():
            if (
                admin.describe_topic(topic)
                and admin.read_topic_setting(topic, FOLLOWER_THROTTLED_REPLICAS) == value
            ):
                admin.set_topic_setting(topic, FOLLOWER_THROTTLED_REPLICAS, None)
        # The settings of an unregistered broker cannot be read; its rate slows nothing without replicas.
        if not registered:
            return True
        try:
            rate = admin.read_broker_setting(broker_id, FOLLOWER_THROTTLED_RATE)
        except KafkaRequestRejectedError:
            raise
        except KafkaUnavailableError:
            return False
        if rate == _THROTTLED_RATE_BYTES_S:
            admin.set_broker_setting(broker_id, FOLLOWER_THROTTLED_RATE, None)
        return True

    def restart_broker(self, broker_id: int) -> None:
        """Run the cluster's restart command, at most 300 s. Raises: RestartCommandError."""
        command = [argument.replace("{broker}", str(broker_id)) for argument in self.cluster.restart]
        # A file, because a broker that the command leaves running would keep a pipe open.
        with TemporaryFile() as output:
            try:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
                code = process.wait(_RESTART_TIMEOUT_S)
            except OSError as error:
                raise RestartCommandError(f"{command[0]}: {error}") from error
            except subprocess.TimeoutExpired as error:
                # The whole process group, so that no child acts after the failure is reported.
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise RestartCommandError(f"{command[0]} was killed after {_RESTART_TIMEOUT_S} s") from error
            output.seek(0)
            lines = output.read().decode(errors="replace").strip().splitlines()
        if code:
            raise RestartCommandError(
                f"{command[0]} exited with {code}: {lines[-1] if lines else 'no output'}"
            )

    def _connect_admin(self) -> ClusterAdmin:
        admin = ClusterAdmin(self.cluster.access)
        admin.start()
        return admin
