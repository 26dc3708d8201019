"""The rules of each kind of mitigation."""

from collections.abc import Iterator, Mapping

from fleetgauge_core.metadata import ClusterMetadata
from fleetgauge_core.tables import ActionKind
from fleetgauge_operations.actions.plan.case import ActionCase, ActionRequest
from fleetgauge_operations.actions.plan.refusal import MAX_NAMED, Refusal, RefusalReason, format_partitions
from fleetgauge_operations.actions.plan.rules import ActionRules
from fleetgauge_operations.actions.plan.snapshot import ClusterSnapshot
from fleetgauge_operations.mitigation.plan.demotion import (
    decode_orders,
    encode_orders,
    find_electable,
    find_led_by_need,
    plan_demotion,
    plan_restoration,
)
from fleetgauge_operations.mitigation.plan.limits import DEFAULT_LIMITS, MitigationLimits
from fleetgauge_operations.mitigation.plan.restarts import (
    decode_throttles,
    encode_throttles,
    find_withheld,
    plan_throttles,
)


def build_rules(limits: MitigationLimits = DEFAULT_LIMITS) -> Mapping[ActionKind, ActionRules]:
    """Return the rules of all kinds of mitigation, in the order in which they are tried."""
    return {
        ActionKind.DEMOTE: ActionRules(
            limits.of_kind(ActionKind.DEMOTE),
            has_lasting_effect=True,
            describe_effect=_describe_demotion,
            describe_undo=lambda case, metadata: _describe_restoration(
                case, metadata, limits.max_led_per_minute
            ),
            make_plan=lambda metadata, broker_id: encode_orders(plan_demotion(metadata, broker_id)),
            keeps_replicas_in_sync=True,
            self_caused=frozenset({RefusalReason.NOTHING_TO_TAKE}),
            fail_safes=(_refuse_nothing_to_take,),
            undo_fail_safes=(_refuse_out_of_sync,),
        ),
        ActionKind.RESTART: ActionRules(
            limits.of_kind(ActionKind.RESTART),
            has_lasting_effect=False,
            describe_effect=_describe_restart,
            describe_undo=_describe_nothing_to_undo,
            allows_fenced_broker=True,
            fail_safes=(_refuse_without_command,),
        ),
        ActionKind.QUARANTINE_RESTART: ActionRules(
            limits.of_kind(ActionKind.QUARANTINE_RESTART),
            has_lasting_effect=True,
            describe_effect=_describe_quarantine,
            describe_undo=_describe_unthrottling,
            make_plan=lambda metadata, broker_id: encode_throttles(plan_throttles(metadata, broker_id)),
            self_caused=frozenset({RefusalReason.THROTTLED}),
            fail_safes=(_refuse_without_command, _refuse_second_throttle),
            find_harm=_find_harm_of_quarantine,
        ),
        ActionKind.EVACUATE: ActionRules(
            limits.of_kind(ActionKind.EVACUATE),
            has_lasting_effect=True,
            describe_effect=_describe_evacuation,
            describe_undo=_describe_nothing_to_undo,
            fail_safes=(_refuse_evacuation,),
        ),
    }


def _describe_demotion(metadata: ClusterMetadata, broker_id: int) -> str:
    partitions, led = len(metadata.replicated_on(broker_id)), len(metadata.led_by(broker_id))
    kept = find_led_by_need(metadata, broker_id)
    if not kept:
        return f"becomes the last replica of all its {partitions} partitions; leads {led} of them now"
    return (
        f"leads {led} of its {partitions} partitions now; {led - len(kept)} go to other replicas, "
        f"{len(kept)} stay, because no other replica is in sync: {format_partitions(kept)}"
    )


def _describe_restoration(case: ActionCase, metadata: ClusterMetadata, max_led_per_minute: int) -> str:
    restoration = plan_restoration(metadata, decode_orders(case.plan))
    return (
        f"the replica order of {len(restoration.orders)} partitions is restored, broker {case.broker_id} "
        f"leads {len(restoration.led_by(case.broker_id))} of them (at most {max_led_per_minute:,} more per "
        f"minute); {len(restoration.kept)} partitions were changed since and are left unchanged"
    )


def _describe_restart(_metadata: ClusterMetadata, _broker_id: int) -> str:
    return "is restarted"


def _describe_quarantine(metadata: ClusterMetadata, broker_id: int) -> str:
    partitions = len(metadata.replicated_on(broker_id))
    return f"is restarted, with replication of its {partitions} partitions throttled"


def _describe_unthrottling(case: ActionCase, _metadata: ClusterMetadata) -> str:
    topics = len(decode_throttles(case.plan))
    return f"the throttle of broker {case.broker_id} is removed from {topics} topics"


def _describe_evacuation(metadata: ClusterMetadata, broker_id: int) -> str:
    partitions = len(metadata.replicated_on(broker_id))
    return f"its replicas of {partitions} partitions are moved to other brokers, with their data"


def _describe_nothing_to_undo(case: ActionCase, _metadata: ClusterMetadata) -> str:
    return f"nothing is to be undone; the case is closed once broker {case.broker_id} works"


def _find_harm_of_quarantine(case: ActionCase, metadata: ClusterMetadata) -> str:
    withheld = find_withheld(metadata, case.broker_id, decode_throttles(case.plan))
    if not withheld:
        return ""
    return (
        f"producers fail in {len(withheld)} partitions under min.insync.replicas while broker "
        f"{case.broker_id} is kept out of sync: {format_partitions(withheld)}"
    )


def _refuse_nothing_to_take(request: ActionRequest, snapshot: ClusterSnapshot) -> Iterator[Refusal]:
    broker_id, metadata = request.broker_id, snapshot.metadata
    if broker_id not in metadata.brokers or plan_demotion(metadata, broker_id):
        return
    if find_electable(metadata, broker_id):
        return
    kept = find_led_by_need(metadata, broker_id)
    explanation = (
        f"no other replica is in sync and could lead {format_partitions(kept)}"
        if kept
        else (f"broker {broker_id} leads no partition and is the last replica of all its partitions")
    )
    yield Refusal(RefusalReason.NOTHING_TO_TAKE, explanation)


def _refuse_without_command(request: ActionRequest, snapshot: ClusterSnapshot) -> Iterator[Refusal]:
    if not snapshot.has_restart_command:
        explanation = f"{request.cluster_id} has no `restart` command in the fleet file"
        yield Refusal(RefusalReason.NO_RESTART, explanation)


def _refuse_second_throttle(request: ActionRequest, snapshot: ClusterSnapshot) -> Iterator[Refusal]:
    topics = {partition.topic for partition in snapshot.metadata.replicated_on(request.broker_id)}
    throttled = sorted(topics & snapshot.metadata.throttled_topics)[:MAX_NAMED]
    if throttled:
        explanation = f"replicas of {', '.join(throttled)} are throttled already; remove that throttle first"
        yield Refusal(RefusalReason.THROTTLED, explanation)


def _refuse_evacuation(_request: ActionRequest, _snapshot: ClusterSnapshot) -> Iterator[Refusal]:
    yield Refusal(
        RefusalReason.PROPOSED_ONLY,
        "replicas are moved by operators; an evacuation is proposed, but never applied",
    )


def _refuse_out_of_sync(case: ActionCase, snapshot: ClusterSnapshot, reason: str | None) -> Iterator[Refusal]:
    """Yield a refusal to return leadership to a broker that is out of sync.

    A broker that is out of sync anywhere has not recovered. With an operator's own reason it leads again
    where it is in sync; it may never catch up elsewhere, and the case must not stay open for that.
    """
    broker_id, metadata = case.broker_id, snapshot.metadata
    to_lead = plan_restoration(metadata, decode_orders(case.plan)).led_by(broker_id)
    required = metadata.replicated_on(broker_id) if to_lead and reason is None else ()
    behind = [partition for partition in required if broker_id not in metadata.partitions[partition].in_sync]
    if behind and broker_id in metadata.brokers:
        partitions = format_partitions(behind)
        explanation = f"broker {broker_id} is out of sync in {partitions}; retry once it has caught up"
        yield Refusal(RefusalReason.NOT_IN_SYNC, explanation)
