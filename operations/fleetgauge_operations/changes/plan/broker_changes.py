"""Changes of the registrations and log directories of brokers."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from fleetgauge_core.metadata import ObservedBroker, ObservedLogDir
from fleetgauge_core.tables import ChangeKind
from fleetgauge_operations.changes.plan.known_parts import KnownParts, count_under_replicated
from fleetgauge_operations.changes.plan.observed_change import ObservedChange


def compare_brokers(before: KnownParts, after: KnownParts) -> Iterator[ObservedChange]:
    """Yield brokers that were registered, unregistered, fenced or unfenced, or that moved."""
    if not before.brokers or not after.brokers:
        return
    starts, ends = before.brokers.began_at, after.brokers.at
    if before.brokers.value == after.brokers.value:
        return
    under_replicated = count_under_replicated(after)
    for broker_id in sorted({*before.brokers.value, *after.brokers.value}):
        earlier, later = before.brokers.value.get(broker_id), after.brokers.value.get(broker_id)
        if earlier is None and later is not None:
            yield ObservedChange(
                ChangeKind.BROKER_REGISTERED, starts, ends, broker_id, after=_describe(later)
            )
        elif earlier is not None and later is None:
            yield ObservedChange(
                ChangeKind.BROKER_UNREGISTERED, starts, ends, broker_id, before=_describe(earlier)
            )
        elif earlier is not None and later is not None and earlier != later:
            yield from _compare_registration(starts, ends, broker_id, earlier, later, under_replicated)


def _describe(broker: ObservedBroker) -> dict[str, object]:
    return {"listener": _listener(broker), "rack": broker.rack, "fenced": broker.is_fenced}


def _listener(broker: ObservedBroker) -> str:
    return f"{broker.host}:{broker.port}"


def _compare_registration(
    starts: datetime,
    ends: datetime,
    broker_id: int,
    before: ObservedBroker,
    after: ObservedBroker,
    under_replicated: int,
) -> Iterator[ObservedChange]:
    if before.is_fenced != after.is_fenced:
        kind = ChangeKind.BROKER_FENCED if after.is_fenced else ChangeKind.BROKER_UNFENCED
        yield ObservedChange(
            kind,
            starts,
            ends,
            broker_id,
            before={"fenced": before.is_fenced},
            after={"fenced": after.is_fenced},
            evidence={"under_replicated_partitions": under_replicated},
        )
    if before.rack != after.rack:
        racks = {"rack": before.rack}, {"rack": after.rack}
        yield ObservedChange(ChangeKind.BROKER_RACK, starts, ends, broker_id, before=racks[0], after=racks[1])
    # A fenced broker may be listed without its address.
    if before.host and after.host and _listener(before) != _listener(after):
        yield ObservedChange(
            ChangeKind.BROKER_LISTENER,
            starts,
            ends,
            broker_id,
            before={"listener": _listener(before)},
            after={"listener": _listener(after)},
        )


def compare_log_dirs(before: KnownParts, after: KnownParts) -> Iterator[ObservedChange]:
    """Yield the brokers of which log directories went offline or online, or were cordoned or uncordoned."""
    for broker_id, reading in sorted(after.log_dirs.items()):
        earlier = before.log_dirs.get(broker_id)
        if earlier is None or earlier.value == reading.value:
            continue
        for state, (reached, left) in _LOG_DIR_KINDS.items():
            paths = _select_paths(earlier.value, state), _select_paths(reading.value, state)
            # A directory that is not configured any more is neither online nor uncordoned.
            changed = {
                reached: paths[1] - paths[0],
                left: (paths[0] - paths[1]) & reading.value.keys(),
            }
            for kind in filter(changed.__getitem__, changed):
                yield ObservedChange(
                    kind,
                    earlier.began_at,
                    reading.at,
                    broker_id,
                    before={state: sorted(paths[0])},
                    after={state: sorted(paths[1])},
                    evidence={"log_dirs": sorted(changed[kind])},
                )


#: The kinds of a change into and out of each state of a log directory.
_LOG_DIR_KINDS = {
    "offline": (ChangeKind.LOG_DIR_OFFLINE, ChangeKind.LOG_DIR_ONLINE),
    "cordoned": (ChangeKind.BROKER_CORDONED, ChangeKind.BROKER_UNCORDONED),
}


def _select_paths(directories: Mapping[str, ObservedLogDir], state: str) -> set[str]:
    return {
        path
        for path, directory in directories.items()
        if (directory.is_offline if state == "offline" else directory.is_cordoned)
    }
