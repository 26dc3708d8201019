"""The user's store of claims, as it is now."""

from collections.abc import Iterator
from datetime import datetime

from fleetgauge_core.fleet import Access, Fleet, Primaries
from fleetgauge_core.kafka import KafkaUnavailableError, Record, TopicReader
from fleetgauge_operations.recovery.mirror_observer import CLIENT_ID
from fleetgauge_operations.recovery.primaries.commands import CommandError, ran
from fleetgauge_operations.recovery.primaries.plan.primary_lease import (
    Claim,
    ClaimsError,
    listed,
    single,
)
from fleetgauge_operations.recovery.primaries.plan.primary_state import Finding, Reach, findings

_COMMAND_S = 20.0
_SILENT_S = 3.0


def claims_now(primaries: Primaries, fleet: Fleet) -> tuple[Claim, ...]:
    """All that the store has. Raises ClaimsError."""
    if primaries.topic is None or primaries.cluster is None:
        return _of_command(primaries)
    try:
        records = tuple(_last_values(fleet.cluster(primaries.cluster).access, primaries.topic))
    except KafkaUnavailableError as error:
        raise ClaimsError(f"{primaries.topic}: {error}") from error
    return tuple(
        single(one.value, f"{primaries.topic}: partition {one.partition}, offset {one.offset}")
        for one in records
    )


def findings_now(fleet: Fleet, answering: frozenset[str], now: datetime) -> tuple[Finding, ...]:
    """What is wrong with whom; nothing where the fleet file names no store. Raises ClaimsError."""
    primaries = fleet.recovery.primaries
    if primaries is None:
        return ()
    claims = claims_now(primaries, fleet)
    return findings(claims, primaries.services, reach_of(fleet, answering), now)


def reach_of(fleet: Fleet, answering: frozenset[str]) -> Reach:
    """``answering``: of the clusters that mirrors copy from or into, which do so now."""
    mirrors = fleet.recovery.mirrors
    looked_at = frozenset(cluster for one in mirrors for cluster in (one.source, one.destination))
    return Reach({one.id: one.region for one in fleet.clusters}, looked_at, answering)


def _of_command(primaries: Primaries) -> tuple[Claim, ...]:
    try:
        printed = ran(primaries.command, _COMMAND_S)
    except CommandError as error:
        raise ClaimsError(f"recovery.primaries.command: {error}") from error
    return listed(printed, f"recovery.primaries.command: {primaries.command[0]}")


def _last_values(access: Access, topic: str) -> Iterator[Record]:
    """Of each key the last record, unless that deletes it. Raises KafkaUnavailableError and ClaimsError."""
    last: dict[tuple[int, bytes], Record] = {}
    for record in _records(access, topic):
        if record.key is None:
            raise ClaimsError(
                f"{topic}: partition {record.partition}, offset {record.offset} has no key: give each claim "
                "one, as compacted topics do"
            )
        last[record.partition, record.key] = record
    return (one for one in last.values() if one.value)


def _records(access: Access, topic: str) -> Iterator[Record]:
    reader = TopicReader(access, topic, CLIENT_ID)
    reader.start()
    try:
        partitions = reader.partitions()
        ends = reader.ends(partitions)
        left, nothing = {one for one, end in ends.items() if end}, True
        reader.add(left, from_beginning=True)
        while left:
            record = reader.poll(_SILENT_S)
            if record is None:
                # The marker of a transaction takes an offset, and is no record: there may be no more.
                reader.bounds(left)
                if nothing:
                    raise ClaimsError(f"{topic}: nothing can be read of it: is there the right to read it?")
                return
            nothing = False
            if record.offset < ends[record.partition]:
                yield record
            if record.offset + 1 >= ends[record.partition]:
                left.discard(record.partition)
    finally:
        reader.stop()
