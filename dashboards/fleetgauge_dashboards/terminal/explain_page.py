"""An explanation as a person reads it: each number, then what made it."""

from collections.abc import Sequence
from datetime import UTC, datetime

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Column, Table

from fleetgauge_dashboards.terminal.output import page
from fleetgauge_dashboards.units import NOTHING, count, instant, milliseconds, minutes, percent
from fleetgauge_dashboards.views.deciding_minutes import Decided, Row
from fleetgauge_dashboards.views.explanation import Explanation
from fleetgauge_dashboards.views.samples import BrokerSamples, MinuteSamples

#: Longer lists are cut for a person; --json has them whole.
SHOWN = 12
SLOWEST = 3


def print_explanation(fleet: str, answer: Explanation, samples: Sequence[MinuteSamples]) -> None:
    out = page()
    state = f"closed, revision {answer.revision}" if answer.closed else "open, to date"
    _say(out, f"{fleet}: {answer.cluster_id}, week {answer.week}, {state}", "bold")
    for note in answer.notes:
        _say(out, f"Note: {note}", "yellow")
    _numbers(out, answer)
    _bad(out, answer)
    _coverage(out, answer)
    _corrections(out, answer)
    _revisions(out, answer)
    for one in samples:
        _samples(out, one)
    _definitions(out, answer)


def _say(out: Console, text: str, style: str | None = None) -> None:
    out.print(text, style=style, markup=False, soft_wrap=True)


def _numbers(out: Console, answer: Explanation) -> None:
    for one in answer.decided:
        _say(out, f"{one.metric}: {one.words}")
        if one.deciding:
            _say(out, f"  decided by {_deciding(one)}")
    ratio = percent(answer.week_row["availability_ratio"], 4)
    if answer.attempted is None or answer.succeeded is None:
        _say(out, f"availability_ratio: {ratio}, as the week's row has it")
    else:
        _say(
            out,
            f"availability_ratio: {ratio}; the minutes held have {answer.succeeded:,} successes of "
            f"{answer.attempted:,} probes",
        )


def _deciding(one: Decided) -> str:
    named = ", ".join(
        f"{instant(at.minute)[:16]}{NOTHING if at.broker_id is None else f' (broker {at.broker_id})'}"
        for at in one.deciding
    )
    more = one.sharing - len(one.deciding)
    return f"{named} and {count(more, 'minute')} more with the same value" if more else named


def _bad(out: Console, answer: Explanation) -> None:
    week = answer.week_row
    _say(
        out,
        f"bad_minutes: {week['bad_minutes']:,} over {milliseconds(week['latency_objective_us'])}; budget "
        f"{minutes(week['latency_budget_minutes'])}, left {minutes(week['latency_budget_left_minutes'])}",
    )
    rows = [
        (
            _between(one.start, one.end),
            f"{one.minutes:,}",
            _broker(one.broker_id),
            milliseconds(one.worst_us),
            ", ".join(one.causes) or "none named",
        )
        for one in sorted(answer.bad_stretches, key=lambda one: -one.minutes)
    ]
    _table(
        out,
        ("bad, longest first, UTC", "minutes", "worst broker", "worst p99, failures counted", "cause"),
        rows,
    )
    homes = [(_broker(one.broker_id), f"{one.minutes:,}", f"{one.bad_minutes:,}") for one in answer.brokers]
    _table(out, ("worst home", "of so many minutes", "of them bad"), homes)


def _coverage(out: Console, answer: Explanation) -> None:
    week = answer.week_row
    _say(
        out,
        f"coverage: {percent(week['coverage'], 2)} of broker-minutes; some broker was measured in "
        f"{week['minutes_measured'] or 0:,} of {week['minutes_expected'] or 0:,} minutes",
    )
    rows = [
        (
            _between(one.start, one.end),
            f"{one.minutes:,}",
            f"{one.fewest_measured} of {count(one.brokers_expected, 'broker')}",
        )
        for one in answer.unmeasured
    ]
    _table(out, ("not all measured, UTC", "minutes", "fewest measured"), rows)


def _corrections(out: Console, answer: Explanation) -> None:
    applied = answer.week_row.get("corrections")
    if not (answer.corrections or answer.corrected or applied):
        return
    _say(out, f"corrections: {applied}" if applied else "corrections:")
    rows = [
        (
            str(one["correction_id"]),
            _scope(one),
            _between(one["starts"], one["ends"]),
            one["recurs"] or "once",
            f"{one['reason']} ({one['author']})",
            f"withdrawn by {one['withdrawn_by']}" if one["withdrawn_at"] else "",
        )
        for one in answer.corrections
    ]
    _table(out, ("correction", "of", "UTC", "recurs", "reason", ""), rows)
    numbers = [(name, str(now), str(raw)) for name, (now, raw) in answer.corrected.items()]
    _table(out, ("number", "corrected", "raw"), numbers)


def _scope(correction: Row) -> str:
    match correction["scope"]:
        case "segment":
            return f"{correction['segment']} {correction['segment_value']}"
        case "broker":
            return _broker(correction["broker_id"])
        case scope:
            return str(scope)


def _revisions(out: Console, answer: Explanation) -> None:
    rows = [
        (
            f"{one.revision}",
            one.reason or "open",
            instant(one.computed_at) if one.computed_at else NOTHING,
            "\n".join(f"{name}: {old} -> {new}" for name, (old, new) in one.changed.items()),
        )
        for one in answer.revisions
    ]
    _table(out, ("revision", "reason", "computed", "changed"), rows)


def _samples(out: Console, one: MinuteSamples) -> None:
    at = instant(one.minute)[:16]
    if one.source == "expired":
        _say(out, f"samples of {at}: expired, and none were kept as evidence")
        return
    _say(out, f"samples of {at}, from {one.source}:")
    rows = [
        (
            _broker(broker.broker_id),
            broker.leg,
            f"{len(broker.latencies_us):,} of {broker.attempted:,}",
            ", ".join(f"{code} {times}" for code, times in broker.failures.items()),
            milliseconds(broker.levels.latency_p99_us) if broker.levels else NOTHING,
            ", ".join(milliseconds(us) for us in broker.latencies_us[: -SLOWEST - 1 : -1]),
        )
        for broker in sorted(one.brokers, key=_slowest_first)
    ]
    _table(out, ("broker", "leg", "succeeded", "failures", "p99", "slowest"), rows)


def _slowest_first(broker: BrokerSamples) -> tuple[str, int, int]:
    worst = broker.levels.latency_p99_censored_us if broker.levels else 0
    return broker.leg, -worst, broker.broker_id


def _definitions(out: Console, answer: Explanation) -> None:
    _say(out, f"definition {answer.definition or NOTHING}:")
    for name, words in answer.definition_words.items():
        _say(out, f"  {name}: {words}", "dim")


def _table(out: Console, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Nothing where there are no rows."""
    if not rows:
        return
    table = Table(*(Column(name, overflow="fold") for name in columns), box=SIMPLE)
    for row in rows[:SHOWN]:
        table.add_row(*row)
    out.print(table)
    if len(rows) > SHOWN:
        _say(out, f"  and {len(rows) - SHOWN} more: --json has them all")


def _broker(broker_id: int | None) -> str:
    return NOTHING if broker_id is None else f"broker {broker_id}"


def _between(start: datetime, end: datetime | None) -> str:
    first, last = (NOTHING if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M}" for at in (start, end))
    return f"{first} to {last[11:] if first[:10] == last[:10] else last}"
