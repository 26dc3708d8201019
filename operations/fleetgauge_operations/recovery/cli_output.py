"""What `fleetgauge recover` tells a person, in lines, and a script, as JSON."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from fleetgauge_core.tables import DRILLS
from fleetgauge_operations.recovery.drill import Drill, Drilled, rows_of
from fleetgauge_operations.recovery.group_offset_sync import GroupPlan
from fleetgauge_operations.recovery.offsets.checkpoint import Checkpoint
from fleetgauge_operations.recovery.offsets.mapping import Answer, Constraint, Why
from fleetgauge_operations.recovery.plan.failback import NONE_STRANDED, Failback
from fleetgauge_operations.recovery.plan.map_case import Case, printable
from fleetgauge_operations.recovery.plan.sync_decision import Decision, Verdict

#: Of the partitions that a line names.
_LONGEST = 160

#: What a drill says of each group; the rest is said once.
_OF_A_GROUP = frozenset(DRILLS.names) - {"drill_id", "at", "active", "passive", "author", "partitions"}

_WORDS = {
    Why.NOT_IN_ACTIVE: "nothing is known of it in active at or before the position",
    Why.NOT_IN_PASSIVE: "nothing is known of it in passive at or before what is consumed",
    Why.MADE_ANEW: "its topic was made anew, and the two sides tell of different ones",
}

_VERDICTS = {
    Verdict.WRITE: "to be written",
    Verdict.UNCHANGED: "there already",
    Verdict.UNKNOWN_TOPIC: "no such topic there",
    Verdict.CONNECTED: "somebody reads in the group there",
    Verdict.MADE_ANEW: "the topic was made anew, and the position is of another one",
    Verdict.STALE: "the mirror stands still",
    Verdict.UNBOUNDED: "nothing is known at or before the position",
    Verdict.POSSIBLE_LOSS: "what is not consumed may be gone there",
    Verdict.BACKWARDS: "it lies further on there",
    Verdict.FAILED: "was to be written, and does not lie there",
}


def plan_lines(found: GroupPlan) -> Iterator[str]:
    """A line a group, and one a verdict."""
    early = [one.early_at_most for one in found.decisions if one.early_at_most is not None]
    again = f"; at most {sum(early):,} before what is not consumed" if early else ""
    did = ", written" if found.wrote else ""
    yield (
        f"{printable(found.group)}: {found.pair.active} to {found.pair.passive}, "
        f"{len(found.decisions)} partitions{did}{again}"
    )
    for verdict, count in Counter(one.verdict for one in found.decisions).items():
        where = ", ".join(_where(one) for one in found.decisions if one.verdict is verdict)
        short = where if len(where) <= _LONGEST else f"{where[:_LONGEST]}..."
        yield f"  {verdict}: {count}: {_VERDICTS[verdict]}: {short}"


def _where(one: Decision) -> str:
    at = f"{printable(one.position.topic)}/{one.position.partition}"
    return at if one.resume is None else f"{at} {one.position.committed} at {one.resume}"


def plan_document(found: GroupPlan) -> dict[str, Any]:
    return {
        "group": found.group,
        "active": found.pair.active,
        "passive": found.pair.passive,
        "written": found.wrote,
        "partitions": [_partition(one) for one in found.decisions],
    }


def _partition(one: Decision) -> dict[str, Any]:
    return {
        "topic": one.position.topic,
        "partition": one.position.partition,
        "committed": one.position.committed,
        "topic_there": one.passive.topic,
        "before": one.passive.committed,
        "resume": one.resume,
        "verdict": one.verdict.value,
        "rule": one.rule,
        "early_at_most": one.early_at_most,
        "silent_s": one.silent_s,
    }


def drill_lines(one: Drilled) -> Iterator[str]:
    """What it would cost, and if it was tried, what it did."""
    found, tried = one.forecast, one.tried
    verdict = "READY" if found.is_ready else f"NOT READY: {', '.join(found.reasons)}"
    yield (
        f"{printable(found.group)}: {verdict}; about {_count(found.replay)} read again, "
        f"at most {_count(found.replay_at_most)}; at most {_count(found.lost_at_most)} lost"
    )
    if tried:
        first = "nothing to read" if tried.first_record_s is None else f"{tried.first_record_s:.2f} s"
        yield (
            f"  tried: decided in {tried.decide_s:.2f} s, written in {tried.write_s:.2f} s, first record: "
            f"{first}; {_count(tried.replayed)} read again, {_count(tried.missing)} missing"
        )


def _count(number: int | None) -> str:
    return "nobody knows how many" if number is None else f"{number:,}"


def drill_document(found: Drill) -> dict[str, Any]:
    groups = [
        {key: value for key, value in row.items() if key in _OF_A_GROUP} | {"partitions": _parts(one)}
        for row, one in zip(rows_of(found), found.groups, strict=True)
    ]
    return {
        "drill_id": found.drill_id,
        "at": found.at.isoformat(),
        "from": found.active,
        "to": found.passive,
        "verdict": "READY" if found.is_ready else "NOT_READY",
        "groups": groups,
    }


def _parts(one: Drilled) -> list[dict[str, Any]]:
    return [
        _partition(part.decision)
        | {
            "replay": part.replay,
            "replay_at_most": part.replay_at_most,
            "lost_at_most": part.lost_at_most,
            "lost_s_at_most": part.lost_s_at_most,
        }
        for part in one.forecast.partitions
    ]


def failback_lines(found: Failback) -> Iterator[str]:
    """Partitions of which something is to be decided, and the steps."""
    for one in found.partitions:
        new = f"; {len(one.new):,} new from {one.new.first} on" if one.new else ""
        if one.stranded is None:
            stranded = f"at most {len(one.at_risk):,} stranded: too many to compare"
        else:
            stranded = f"{one.stranded.count:,} stranded, {one.stranded.bytes:,} bytes"
        if one.stranded != NONE_STRANDED or one.new:
            yield f"{printable(one.topic)}/{one.partition}: {stranded}{new}"
    for number, step in enumerate(found.steps, 1):
        yield f"{number}. {step}"


def failback_document(found: Failback) -> dict[str, Any]:
    return {
        "primary": found.primary,
        "secondary": found.secondary,
        "stranded": found.stranded,
        "ordered_topics": list(found.ordered),
        "steps": list(found.steps),
        "partitions": [
            {
                "topic": one.topic,
                "partition": one.partition,
                "at_risk": [one.at_risk.first, one.at_risk.end],
                "stranded": asdict(one.stranded) if one.stranded else None,
                "new": [one.new.first, one.new.end] if one.new else None,
            }
            for one in found.partitions
        ],
    }


def map_lines(case: Case, answer: Answer) -> Iterator[str]:
    if case.ignored:
        yield f"ignored: {', '.join(map(printable, case.ignored))}"
    for side, histories in (("active", case.active), ("passive", case.passive)):
        for source, one in histories.items():
            if one.forgotten:
                where = f"{side}.{printable(source)}"
                yield f"{where}: {one.forgotten} not used, as offsets in {side} go back after them"
    for source, constraint in answer.per_source.items():
        yield f"{printable(source)}: {_told(constraint)}"
    yield f"resume at {answer.resume}, by {answer.rule}{_how_good(answer)}"


def _told(one: Constraint) -> str:
    if one.resume is None or one.active is None or one.passive is None:
        return f"unbounded: {_WORDS[one.why]}"
    return f"from {one.resume} on: active has {_place(one.active)}, passive {_place(one.passive)}"


def _place(at: Checkpoint) -> str:
    what = "" if at.origin.names_a_record else "watermark "
    return f"{what}{at.src_offset} at {at.dst_offset}"


def _how_good(answer: Answer) -> str:
    if answer.early_at_most is None:
        return ": all that is there is read again, as a source is unbounded"
    loss = "; what is not consumed may be gone already" if answer.possible_loss else ""
    return f": at most {answer.early_at_most} before the first record that is not consumed{loss}"
