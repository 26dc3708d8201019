"""Print an explanation of a week: each service level, then the minutes behind it."""

from collections.abc import Sequence
from datetime import UTC, datetime

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from fleetgauge_core.runtime.console import print_table
from fleetgauge_dashboards.terminal.output import open_console
from fleetgauge_dashboards.units import (
    NO_VALUE,
    format_broker,
    format_count,
    format_instant,
    format_milliseconds,
    format_minutes,
    format_percent,
)
from fleetgauge_dashboards.views.deciding_minutes import DecidedNumber, Row
from fleetgauge_dashboards.views.explanation import Explanation
from fleetgauge_dashboards.views.samples import BrokerSamples, MinuteSamples

#: Rows of each table; --json has all.
MAX_ROWS = 12
#: Slowest samples listed per broker.
MAX_SLOWEST = 3


def print_explanation(fleet: str, explanation: Explanation, samples: Sequence[MinuteSamples]) -> None:
    """Print an explanation to stdout, and the samples of its deciding minutes."""
    output = open_console()
    state = f"closed, revision {explanation.revision}" if explanation.closed else "open, to date"
    _print_line(output, f"{fleet}: {explanation.cluster_id}, week {explanation.week}, {state}", "bold")
    for note in explanation.notes:
        _print_line(output, f"Note: {note}", "yellow")
    _print_numbers(output, explanation)
    _print_bad_minutes(output, explanation)
    _print_coverage(output, explanation)
    _print_corrections(output, explanation)
    _print_revisions(output, explanation)
    for minute_samples in samples:
        _print_samples(output, minute_samples)
    _print_definitions(output, explanation)


def _print_line(output: Console, text: str, style: str | None = None) -> None:
    output.print(text, style=style, markup=False, soft_wrap=True)


def _print_numbers(output: Console, explanation: Explanation) -> None:
    for number in explanation.decided:
        _print_line(output, f"{number.metric}: {number.words}")
        if number.deciding:
            _print_line(output, f"  determined by {_format_deciding_minutes(number)}")
    ratio = format_percent(explanation.week_row["availability_ratio"], 4)
    if explanation.attempted is None or explanation.succeeded is None:
        _print_line(output, f"availability_ratio: {ratio}, as stored for the week")
    else:
        _print_line(
            output,
            f"availability_ratio: {ratio}; the retained minutes have {explanation.succeeded:,} successful of "
            f"{explanation.attempted:,} attempted probes",
        )


def _format_deciding_minutes(number: DecidedNumber) -> str:
    minutes = ", ".join(
        f"{format_instant(minute.minute)[:16]}"
        + (NO_VALUE if minute.broker_id is None else f" (broker {minute.broker_id})")
        for minute in number.deciding
    )
    more = number.sharing - len(number.deciding)
    return f"{minutes} and {format_count(more, 'minute')} more with the same value" if more else minutes


def _print_bad_minutes(output: Console, explanation: Explanation) -> None:
    week = explanation.week_row
    _print_line(
        output,
        f"bad_minutes: {week['bad_minutes']:,} over {format_milliseconds(week['latency_objective_us'])}; "
        "budget "
        f"{format_minutes(week['latency_budget_minutes'])}, left "
        f"{format_minutes(week['latency_budget_left_minutes'])}",
    )
    rows = [
        (
            _format_range(period.start, period.end),
            f"{period.minutes:,}",
            format_broker(period.broker_id),
            format_milliseconds(period.worst_us),
            ", ".join(period.causes) or "unknown",
        )
        for period in sorted(explanation.bad_stretches, key=lambda period: -period.minutes)
    ]
    _print_table(
        output,
        (
            "bad minutes, longest first, UTC",
            "minutes",
            "worst broker",
            "worst p99 with failures",
            "cause",
        ),
        rows,
    )
    brokers = [
        (format_broker(broker.broker_id), f"{broker.minutes:,}", f"{broker.bad_minutes:,}")
        for broker in explanation.brokers
    ]
    _print_table(output, ("broker", "minutes as worst broker", "of these, bad"), brokers)


def _print_coverage(output: Console, explanation: Explanation) -> None:
    week = explanation.week_row
    _print_line(
        output,
        f"coverage: {format_percent(week['coverage'], 2)} of broker-minutes; at least one broker was "
        "measured in "
        f"{week['minutes_measured'] or 0:,} of {week['minutes_expected'] or 0:,} minutes",
    )
    rows = [
        (
            _format_range(period.start, period.end),
            f"{period.minutes:,}",
            f"{period.fewest_measured} of {format_count(period.brokers_expected, 'broker')}",
            ", ".join(period.reasons),
        )
        for period in explanation.unmeasured
    ]
    _print_table(output, ("not all brokers measured, UTC", "minutes", "fewest measured", "reason"), rows)


def _print_corrections(output: Console, explanation: Explanation) -> None:
    applied = explanation.week_row.get("corrections")
    if not (explanation.corrections or explanation.corrected or applied):
        return
    _print_line(output, f"corrections: {applied}" if applied else "corrections:")
    rows = [
        (
            str(correction["correction_id"]),
            _format_scope(correction),
            _format_range(correction["starts"], correction["ends"]),
            correction["recurs"] or "once",
            f"{correction['reason']} ({correction['author']})",
            f"withdrawn by {correction['withdrawn_by']}" if correction["withdrawn_at"] else "",
        )
        for correction in explanation.corrections
    ]
    _print_table(output, ("correction", "scope", "UTC", "recurs", "reason", "state"), rows)
    values = [(name, str(corrected), str(raw)) for name, (corrected, raw) in explanation.corrected.items()]
    _print_table(output, ("value", "corrected", "raw"), values)


def _format_scope(correction: Row) -> str:
    match correction["scope"]:
        case "segment":
            return f"{correction['segment']} {correction['segment_value']}"
        case "broker":
            return format_broker(correction["broker_id"])
        case scope:
            return str(scope)


def _print_revisions(output: Console, explanation: Explanation) -> None:
    rows = [
        (
            f"{revision.revision}",
            revision.reason or "open",
            format_instant(revision.computed_at) if revision.computed_at else NO_VALUE,
            "\n".join(f"{name}: {old} -> {new}" for name, (old, new) in revision.changed.items()),
        )
        for revision in explanation.revisions
    ]
    _print_table(output, ("revision", "reason", "computed", "changed values"), rows)


def _print_samples(output: Console, minute_samples: MinuteSamples) -> None:
    at = format_instant(minute_samples.minute)[:16]
    if minute_samples.source == "expired":
        _print_line(output, f"samples of {at}: expired, and not kept as evidence")
        return
    _print_line(output, f"samples of {at}, from {minute_samples.source}:")
    rows = [
        (
            format_broker(broker.broker_id),
            broker.leg,
            f"{len(broker.latencies_us):,} of {broker.attempted:,}",
            ", ".join(f"{code} {count}" for code, count in broker.failures.items()),
            format_milliseconds(broker.levels.latency_p99_us) if broker.levels else NO_VALUE,
            ", ".join(format_milliseconds(us) for us in broker.latencies_us[: -MAX_SLOWEST - 1 : -1]),
        )
        for broker in sorted(minute_samples.brokers, key=_worst_first_key)
    ]
    _print_table(output, ("broker", "leg", "succeeded", "failures", "p99", "slowest"), rows)


def _worst_first_key(broker: BrokerSamples) -> tuple[str, int, int]:
    worst = broker.levels.latency_p99_censored_us if broker.levels else 0
    return broker.leg, -worst, broker.broker_id


def _print_definitions(output: Console, explanation: Explanation) -> None:
    _print_line(output, f"definition {explanation.definition or NO_VALUE}:")
    for name, definition in explanation.definition_words.items():
        _print_line(output, f"  {name}: {definition}", "dim")


def _print_table(output: Console, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table, or nothing without rows."""
    if not rows:
        return
    table = Table(*columns, box=SIMPLE)
    for row in rows[:MAX_ROWS]:
        table.add_row(*row)
    print_table(output, table)
    if len(rows) > MAX_ROWS:
        _print_line(output, f"  and {len(rows) - MAX_ROWS} more: see --json")


def _format_range(start: datetime, end: datetime | None) -> str:
    first, last = (NO_VALUE if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M}" for at in (start, end))
    return f"{first} to {last[11:] if first[:10] == last[:10] else last}"
