"""Output of `fleetgauge recover`: text lines for people, and JSON documents for scripts."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from fleetgauge_core.tables import DRILLS
from fleetgauge_operations.recovery.drill import DrillReport, GroupDrill, drill_rows
from fleetgauge_operations.recovery.group_offset_sync import GroupSyncPlan
from fleetgauge_operations.recovery.offsets.checkpoint import Checkpoint
from fleetgauge_operations.recovery.offsets.mapping import ConstraintBasis, MappingResult, SourceConstraint
from fleetgauge_operations.recovery.plan.failback import NO_STRANDED_RECORDS, FailbackReport
from fleetgauge_operations.recovery.plan.map_case import MappingCase, escape_unprintable
from fleetgauge_operations.recovery.plan.sync_decision import SyncDecision, SyncVerdict

#: Maximum length of the list of partitions in one line.
_MAX_LIST_LENGTH = 160

#: The columns of recovery/drills that are repeated for each group of a drill's document.
_GROUP_KEYS = frozenset(DRILLS.column_names) - {"drill_id", "at", "active", "passive", "author", "partitions"}

_UNBOUNDED = {
    ConstraintBasis.NOT_IN_ACTIVE: "no checkpoint in active at or before the position",
    ConstraintBasis.NOT_IN_PASSIVE: "no checkpoint in passive at or before the consumed offset",
    ConstraintBasis.RECREATED: "its topic was recreated, and the two clusters replicate different topics",
}

_VERDICTS = {
    SyncVerdict.WRITE: "to be written",
    SyncVerdict.UNCHANGED: "committed already",
    SyncVerdict.UNKNOWN_TOPIC: "no such topic in the passive cluster",
    SyncVerdict.GROUP_HAS_MEMBERS: "the group has members in the passive cluster",
    SyncVerdict.TOPIC_RECREATED: "the topic was recreated, and no checkpoint of it covers the position",
    SyncVerdict.STALE: "the mirror makes no progress",
    SyncVerdict.UNBOUNDED: "no checkpoint at or before the position",
    SyncVerdict.POSSIBLE_LOSS: "unconsumed records may have expired in the passive cluster",
    SyncVerdict.BACKWARDS: "a higher offset is committed in the passive cluster",
    SyncVerdict.FAILED: "written, but another offset was read back",
}


def format_plan(plan: GroupSyncPlan) -> Iterator[str]:
    """Yield a line for the group, and one per verdict on its partitions."""
    early = [decision.early_at_most for decision in plan.decisions if decision.early_at_most is not None]
    replay = f"; at most {sum(early):,} offsets before the first unconsumed record" if early else ""
    written = ", written" if plan.was_applied else ""
    yield (
        f"{escape_unprintable(plan.group)}: {plan.pair.active} to {plan.pair.passive}, "
        f"{len(plan.decisions)} partitions{written}{replay}"
    )
    for verdict, count in Counter(decision.verdict for decision in plan.decisions).items():
        partitions = ", ".join(
            _format_partition(decision) for decision in plan.decisions if decision.verdict is verdict
        )
        is_long = len(partitions) > _MAX_LIST_LENGTH
        shown = f"{partitions[:_MAX_LIST_LENGTH]}..." if is_long else partitions
        yield f"  {verdict}: {count}: {_VERDICTS[verdict]}: {shown}"


def _format_partition(decision: SyncDecision) -> str:
    partition = f"{escape_unprintable(decision.position.topic)}/{decision.position.partition}"
    if decision.resume is None:
        return partition
    return f"{partition} {decision.position.committed} at {decision.resume}"


def plan_document(plan: GroupSyncPlan) -> dict[str, Any]:
    """Return the plan of a group as a JSON document."""
    return {
        "group": plan.group,
        "active": plan.pair.active,
        "passive": plan.pair.passive,
        "written": plan.was_applied,
        "partitions": [_partition_document(decision) for decision in plan.decisions],
    }


def _partition_document(decision: SyncDecision) -> dict[str, Any]:
    return {
        "topic": decision.position.topic,
        "partition": decision.position.partition,
        "committed": decision.position.committed,
        "topic_there": decision.passive.topic,
        "before": decision.passive.committed,
        "resume": decision.resume,
        "verdict": decision.verdict.value,
        "rule": decision.rule,
        "early_at_most": decision.early_at_most,
        "silent_s": decision.stalled_s,
    }


def format_drill(drill: GroupDrill) -> Iterator[str]:
    """Yield the forecast of a group, and the measurements if the drill was executed."""
    forecast, run = drill.forecast, drill.run
    verdict = "READY" if forecast.is_ready else f"NOT READY: {', '.join(forecast.reasons)}"
    replay, replay_at_most = _format_count(forecast.replay), _format_count(forecast.replay_at_most)
    yield (
        f"{escape_unprintable(forecast.group)}: {verdict}; about {replay} read again, "
        f"at most {replay_at_most}; at most {_format_count(forecast.lost_at_most)} lost"
    )
    if run:
        first = "no record to read" if run.first_record_s is None else f"{run.first_record_s:.2f} s"
        yield (
            f"  executed: decided in {run.decide_s:.2f} s, written in {run.write_s:.2f} s, first record: "
            f"{first}; {_format_count(run.replayed)} read again, {_format_count(run.missing)} missing"
        )


def _format_count(number: int | None) -> str:
    return "an unknown number" if number is None else f"{number:,}"


def drill_document(report: DrillReport) -> dict[str, Any]:
    """Return a drill as a JSON document."""
    groups = [
        {key: value for key, value in row.items() if key in _GROUP_KEYS}
        | {"partitions": _forecast_documents(drill)}
        for row, drill in zip(drill_rows(report), report.groups, strict=True)
    ]
    return {
        "drill_id": report.drill_id,
        "at": report.at.isoformat(),
        "from": report.active,
        "to": report.passive,
        "verdict": "READY" if report.is_ready else "NOT_READY",
        "groups": groups,
    }


def _forecast_documents(drill: GroupDrill) -> list[dict[str, Any]]:
    return [
        _partition_document(partition.decision)
        | {
            "replay": partition.replay,
            "replay_at_most": partition.replay_at_most,
            "lost_at_most": partition.lost_at_most,
            "lost_s_at_most": partition.lost_s_at_most,
        }
        for partition in drill.forecast.partitions
    ]


def format_failback(report: FailbackReport) -> Iterator[str]:
    """Yield a line per partition with stranded or new records, and the steps of the failback."""
    for partition in report.partitions:
        new = f"; {len(partition.new):,} new from offset {partition.new.first}" if partition.new else ""
        if partition.stranded is None:
            stranded = f"at most {len(partition.at_risk):,} stranded, too many to compare"
        else:
            stranded = f"{partition.stranded.count:,} stranded, {partition.stranded.bytes:,} bytes"
        if partition.stranded != NO_STRANDED_RECORDS or partition.new:
            yield f"{escape_unprintable(partition.topic)}/{partition.partition}: {stranded}{new}"
    for number, step in enumerate(report.steps, 1):
        yield f"{number}. {step}"


def failback_document(report: FailbackReport) -> dict[str, Any]:
    """Return a failback report as a JSON document."""
    return {
        "primary": report.primary,
        "secondary": report.secondary,
        "stranded": report.stranded,
        "ordered_topics": list(report.ordered),
        "steps": list(report.steps),
        "partitions": [
            {
                "topic": partition.topic,
                "partition": partition.partition,
                "at_risk": [partition.at_risk.first, partition.at_risk.end],
                "stranded": asdict(partition.stranded) if partition.stranded else None,
                "new": [partition.new.first, partition.new.end] if partition.new else None,
            }
            for partition in report.partitions
        ],
    }


def format_mapping(case: MappingCase, result: MappingResult) -> Iterator[str]:
    """Yield what was ignored or discarded, a line per source, and the resume offset."""
    if case.ignored:
        yield f"ignored: {', '.join(map(escape_unprintable, case.ignored))}"
    for side, histories in (("active", case.active), ("passive", case.passive)):
        for source, history in histories.items():
            if history.discarded_count:
                where = f"{side}.{escape_unprintable(source)}"
                yield f"{where}: {history.discarded_count} discarded, because later offsets in {side} go back"
    for source, constraint in result.per_source.items():
        yield f"{escape_unprintable(source)}: {_format_constraint(constraint)}"
    yield f"resume at {result.resume}, by {result.rule}{_format_precision(result)}"


def _format_constraint(constraint: SourceConstraint) -> str:
    if constraint.resume is None or constraint.active is None or constraint.passive is None:
        return f"unbounded: {_UNBOUNDED[constraint.basis]}"
    active, passive = _format_checkpoint(constraint.active), _format_checkpoint(constraint.passive)
    return f"from {constraint.resume} on: active has {active}, passive {passive}"


def _format_checkpoint(checkpoint: Checkpoint) -> str:
    kind = "" if checkpoint.origin.identifies_record else "watermark "
    return f"{kind}{checkpoint.src_offset} at {checkpoint.dst_offset}"


def _format_precision(result: MappingResult) -> str:
    if result.early_at_most is None:
        return ": the whole log is read again, because a source is unbounded"
    loss = "; unconsumed records may have expired" if result.possible_loss else ""
    return f": at most {result.early_at_most} before the first unconsumed record{loss}"
