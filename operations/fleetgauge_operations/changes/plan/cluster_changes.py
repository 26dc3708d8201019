"""Changes that concern a whole cluster: the quorum, feature levels, client quotas and ACLs."""

from collections.abc import Iterator, Mapping

from fleetgauge_core.tables import ChangeKind
from fleetgauge_operations.changes.plan.known_parts import KnownParts
from fleetgauge_operations.changes.plan.observed_change import ObservedChange


def compare_quorum(before: KnownParts, after: KnownParts) -> Iterator[ObservedChange]:
    """Yield another active controller, and other voters or directories of voters."""
    if not before.quorum or not after.quorum:
        return
    starts, ends = before.quorum.began_at, after.quorum.at
    earlier, later = before.quorum.value, after.quorum.value
    if earlier.leader != later.leader:
        yield ObservedChange(
            ChangeKind.CONTROLLER_MOVED,
            starts,
            ends,
            before={"controller": earlier.leader},
            after={"controller": later.leader},
            evidence={"leader_epochs": [earlier.leader_epoch, later.leader_epoch]},
        )
    voters = [
        {str(voter): quorum.directory_ids.get(voter) for voter in sorted(quorum.voters)}
        for quorum in (earlier, later)
    ]
    if voters[0] != voters[1]:
        yield ObservedChange(
            ChangeKind.QUORUM_CHANGED,
            starts,
            ends,
            before={"voters": voters[0]},
            after={"voters": voters[1]},
        )


def compare_features(before: KnownParts, after: KnownParts) -> Iterator[ObservedChange]:
    """Yield the finalized features whose level changed, for instance metadata.version."""
    if not before.feature_levels or not after.feature_levels:
        return
    levels = before.feature_levels.value, after.feature_levels.value
    changed = {
        name for name in levels[0].keys() | levels[1].keys() if levels[0].get(name) != levels[1].get(name)
    }
    if changed:
        yield ObservedChange(
            ChangeKind.FEATURE_LEVEL,
            before.feature_levels.began_at,
            after.feature_levels.at,
            before={name: levels[0].get(name) for name in sorted(changed)},
            after={name: levels[1].get(name) for name in sorted(changed)},
        )


def compare_quotas(before: KnownParts, after: KnownParts) -> Iterator[ObservedChange]:
    """Yield the entities whose client quotas were set, changed or removed."""
    if not before.quotas or not after.quotas:
        return
    earlier, later = before.quotas.value, after.quotas.value
    for entity in sorted(earlier.keys() | later.keys()):
        values = earlier.get(entity), later.get(entity)
        if values[0] != values[1]:
            yield ObservedChange(
                ChangeKind.QUOTA_CHANGED,
                before.quotas.began_at,
                after.quotas.at,
                before=_copy(values[0]),
                after=_copy(values[1]),
                evidence={"entity": entity},
                key=entity,
            )


def _copy(values: Mapping[str, float] | None) -> dict[str, float] | None:
    return dict(values) if values else None


def compare_acls(before: KnownParts, after: KnownParts) -> Iterator[ObservedChange]:
    """Yield one change if bindings were added or removed; it has their numbers, not the bindings."""
    if not before.acls or not after.acls or before.acls.value == after.acls.value:
        return
    earlier, later = before.acls.value, after.acls.value
    yield ObservedChange(
        ChangeKind.ACLS_CHANGED,
        before.acls.began_at,
        after.acls.at,
        before={"bindings": len(earlier)},
        after={"bindings": len(later)},
        evidence={"added": len(later - earlier), "removed": len(earlier - later)},
    )
