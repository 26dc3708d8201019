"""An agent that also records when each probe was sent and how late; ``--mocked`` lets it use mock brokers.

python -m tests.benchmarks._agent_process --sent sent.bin -- --config fleet.yaml --spool spool
"""

from array import array
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from unittest.mock import patch

import click
from confluent_kafka.admin import AdminClient

from fleetgauge_core.fleet import ClusterAccess
from fleetgauge_core.kafka import BrokerRegistry
from fleetgauge_core.metadata import BrokerRegistration
from fleetgauge_probes.agent import registration
from fleetgauge_probes.agent.probe_tracker import ProbeTracker
from fleetgauge_probes.cli import probe


@cache
def brokers_in_metadata(access: ClusterAccess) -> BrokerRegistry:
    """Return the brokers of a cluster's metadata; mock brokers do not support DescribeCluster.

    The result is cached because this client creates a thread and a connection for every broker, which would
    be measured as well.
    """
    metadata = AdminClient({"bootstrap.servers": access.bootstrap}).list_topics(timeout=10)
    brokers = metadata.brokers.values()
    return BrokerRegistry(
        "mock", {b.id: BrokerRegistration(b.id, b.host, b.port, None, False) for b in brokers}
    )


@click.command()
@click.option(
    "--sent",
    type=click.Path(path_type=Path),
    required=True,
    help="Output: pairs of uptime and schedule lag, in ns.",
)
@click.option("--mocked", is_flag=True)
@click.argument("arguments", nargs=-1)
def main(sent: Path, mocked: bool, arguments: tuple[str, ...]) -> None:
    pairs, record_send = array("q"), ProbeTracker.record_send

    def record_send_and_lag(
        tracker: ProbeTracker, sequence: int, due_ns: int, sent_ns: int, minute: int
    ) -> None:
        pairs.extend((sent_ns, sent_ns - due_ns))
        record_send(tracker, sequence, due_ns, sent_ns, minute)

    with ExitStack() as stack:
        stack.enter_context(patch.object(ProbeTracker, "record_send", record_send_and_lag))
        if mocked:
            stack.enter_context(patch.object(registration, "read_broker_registry", brokers_in_metadata))
        probe.main(arguments, standalone_mode=False)
    sent.write_bytes(pairs.tobytes())


if __name__ == "__main__":
    main()
