"""Read primary leases from the store that the fleet file configures: a command, or a compacted topic."""

from collections.abc import Iterator
from datetime import datetime

from fleetgauge_core.fleet import ClusterAccess, Fleet, Primaries
from fleetgauge_core.kafka import ConsumerRecord, KafkaUnavailableError, TopicReader
from fleetgauge_operations.recovery.mirror_observer import CLIENT_ID
from fleetgauge_operations.recovery.primaries.commands import CommandError, run_command
from fleetgauge_operations.recovery.primaries.plan.primary_lease import (
    PrimaryLease,
    PrimaryLeaseError,
    parse_lease,
    parse_leases,
)
from fleetgauge_operations.recovery.primaries.plan.primary_state import (
    ClusterReachability,
    PrimaryFinding,
    find_primary_problems,
)

_COMMAND_TIMEOUT_S = 20.0
_POLL_TIMEOUT_S = 3.0


def read_leases(primaries: Primaries, fleet: Fleet) -> tuple[PrimaryLease, ...]:
    """Return all leases of the store. Raises PrimaryLeaseError."""
    if primaries.topic is None or primaries.cluster is None:
        return _read_from_command(primaries)
    try:
        records = tuple(_read_latest_values(fleet.cluster(primaries.cluster).access, primaries.topic))
    except KafkaUnavailableError as error:
        raise PrimaryLeaseError(f"{primaries.topic}: {error}") from error
    return tuple(
        parse_lease(record.value, f"{primaries.topic}: partition {record.partition}, offset {record.offset}")
        for record in records
    )


def read_primary_findings(
    fleet: Fleet, reachable: frozenset[str], now: datetime
) -> tuple[PrimaryFinding, ...]:
    """Return the findings on all primaries; none if the fleet file names no store.

    Raises: PrimaryLeaseError if the store cannot be read.
    """
    primaries = fleet.recovery.primaries
    if primaries is None:
        return ()
    leases = read_leases(primaries, fleet)
    return find_primary_problems(leases, primaries.services, build_reachability(fleet, reachable), now)


def build_reachability(fleet: Fleet, reachable: frozenset[str]) -> ClusterReachability:
    """Combine the regions of the fleet file with the clusters that answered the last inspection."""
    mirrors = fleet.recovery.mirrors
    inspected = frozenset(cluster for mirror in mirrors for cluster in (mirror.source, mirror.destination))
    regions = {cluster.id: cluster.region for cluster in fleet.clusters}
    return ClusterReachability(regions, inspected, reachable)


def _read_from_command(primaries: Primaries) -> tuple[PrimaryLease, ...]:
    try:
        stdout = run_command(primaries.command, _COMMAND_TIMEOUT_S)
    except CommandError as error:
        raise PrimaryLeaseError(f"recovery.primaries.command: {error}") from error
    return parse_leases(stdout, f"recovery.primaries.command: {primaries.command[0]}")


def _read_latest_values(access: ClusterAccess, topic: str) -> Iterator[ConsumerRecord]:
    """Yield the latest record of each key, without tombstones.

    Raises: KafkaUnavailableError; PrimaryLeaseError if a record has no key.
    """
    latest: dict[tuple[int, bytes], ConsumerRecord] = {}
    for record in _read_records(access, topic):
        if record.key is None:
            raise PrimaryLeaseError(
                f"{topic}: the record at partition {record.partition}, offset {record.offset} has no key: "
                "give each lease a key, so that the topic can be compacted"
            )
        latest[record.partition, record.key] = record
    return (record for record in latest.values() if record.value)


def _read_records(access: ClusterAccess, topic: str) -> Iterator[ConsumerRecord]:
    reader = TopicReader(access, topic, CLIENT_ID)
    reader.start()
    try:
        partitions = reader.wait_for_partitions()
        ends = reader.read_end_offsets(partitions)
        unfinished, is_empty = {partition for partition, end in ends.items() if end}, True
        reader.assign(unfinished, from_beginning=True)
        while unfinished:
            record = reader.poll(_POLL_TIMEOUT_S)
            if record is None:
                # A transaction marker takes an offset but is not a record, so no record may be left.
                reader.read_offset_bounds(unfinished)
                if is_empty:
                    raise PrimaryLeaseError(
                        f"{topic}: no record can be read: check the READ permission on the topic"
                    )
                return
            is_empty = False
            if record.offset < ends[record.partition]:
                yield record
            if record.offset + 1 >= ends[record.partition]:
                unfinished.discard(record.partition)
    finally:
        reader.stop()
