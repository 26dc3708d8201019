"""Show one minute of a cluster: its numbers, and each broker's samples behind them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from fleetgauge_core.contract import Leg
from fleetgauge_core.contract.failure_codes import find_agent_fault, split_failures
from fleetgauge_core.slo.levels import BrokerMinuteLevels
from fleetgauge_dashboards.links import (
    MINUTE,
    BrokerView,
    ClusterView,
    MinuteView,
    Span,
)
from fleetgauge_dashboards.reader import ClusterWeek
from fleetgauge_dashboards.units import NO_VALUE, format_broker, format_milliseconds, format_percent
from fleetgauge_dashboards.views.cluster import KeyFigure, judge_objective, week_span
from fleetgauge_dashboards.views.deciding_minutes import Row, find_worst_home
from fleetgauge_dashboards.views.samples import BrokerSamples, MinuteSamples, SampleSource

#: The slowest samples that a broker's line lists; the downloaded file has all.
SLOWEST_SAMPLES = 5
#: Minutes before and after a minute that a link to its cluster shows.
_AROUND = 30
_UNMEASURED = "not measured"

#: Explains to a reader where the samples come from.
SOURCE_TEXTS: dict[SampleSource, str] = {
    "bronze": "All samples, from the probe records.",
    "evidence": "The probe records have expired; these samples were kept as evidence when the week closed.",
    "late": "Every vantage ran behind its schedule in this minute, so its samples do not count; "
    "the probe records still hold them.",
    "expired": "The samples have expired. None were kept as evidence, because this minute did not decide "
    "its week. Only the numbers of each broker remain.",
}


@dataclass(frozen=True, slots=True)
class BrokerLine:
    """A line of the minute's table, formatted as text: one broker and leg."""

    broker: BrokerView
    leg: Leg
    succeeded: str
    failures: str
    p50: str
    p99: str
    p99_censored: str
    slowest: str


def find_week_of_minute(weeks: Sequence[ClusterWeek], minute: datetime, zone: str) -> ClusterWeek | None:
    """Return the cluster's week that contains the minute; None if there is none."""
    spans = ((week, week_span(week.week, zone)) for week in weeks)
    return next((week for week, span in spans if span.start <= minute < span.end), None)


def surrounding_view(view: MinuteView) -> ClusterView:
    """Return the view of the cluster half an hour before and after the minute."""
    span = Span(view.minute - _AROUND * MINUTE, view.minute + (_AROUND + 1) * MINUTE)
    return ClusterView(view.cluster_id, shown=span, display=view.display)


def minute_key_figures(minute: Row | None, objective_us: int | None) -> tuple[KeyFigure, ...]:
    """Return the key figures of silver's row of the minute; empty where silver has no row."""
    if minute is None:
        return ()
    censored, availability = minute["latency_p99_censored_us"], minute["availability"]
    is_unknown = censored is None or objective_us is None
    return (
        KeyFigure(
            "Latency p99",
            format_milliseconds(minute["latency_p99_us"]),
            judge_objective(is_unknown, (censored or 0) <= (objective_us or 0)),
            (
                f"of {format_broker(minute['latency_worst_home'])}, "
                f"objective {format_milliseconds(objective_us)}",
                f"with failures: {format_milliseconds(censored)}, {format_broker(find_worst_home(minute))}",
            ),
            "minute_latency",
        ),
        KeyFigure(
            "Availability of the worst broker",
            format_percent(availability),
            None,
            (
                f"of {format_broker(minute['availability_worst_home'])}",
                f"all brokers pooled: {format_percent(minute['availability_pooled'])}",
            ),
            "minute_availability",
        ),
        KeyFigure(
            "Measured",
            f"{minute['brokers_measured'] or 0:,} of {minute['brokers_expected'] or 0:,}",
            None,
            ("brokers, client leg", "a broker is measured from 50 attempts on"),
            "minute_measured",
        ),
    )


def broker_lines(view: MinuteView, samples: MinuteSamples) -> tuple[BrokerLine, ...]:
    """Return a line for each broker and leg with samples: client leg first, then worst broker first."""
    return tuple(_line(view, broker) for broker in sorted(samples.brokers, key=_worst_first))


def broker_lines_from_silver(view: MinuteView, rows: Iterable[Row]) -> tuple[BrokerLine, ...]:
    """Return the same lines from silver's rows, which hold only the slowest of the samples."""
    worst_first = sorted(
        rows, key=lambda row: (row["leg"], -(row["latency_p99_censored_us"] or 0), row["broker_id"])
    )
    return tuple(
        BrokerLine(
            broker=_broker_view(view, row["broker_id"]),
            leg=Leg(row["leg"]),
            succeeded=f"{row['succeeded'] or 0:,} of {row['attempted'] or 0:,}",
            failures=_format_failures(*_split(row)),
            p50=format_milliseconds(row["latency_p50_us"]),
            p99=format_milliseconds(row["latency_p99_us"]),
            p99_censored=format_milliseconds(row["latency_p99_censored_us"])
            if row["measured"]
            else describe_unmeasured(_split(row)[1]),
            slowest=format_milliseconds(row["latency_max_us"]),
        )
        for row in worst_first
    )


def select_leg(samples: MinuteSamples, leg: Leg) -> tuple[BrokerSamples, ...]:
    """Return the samples of one leg."""
    return tuple(broker for broker in samples.brokers if broker.leg == leg)


def _worst_first(broker: BrokerSamples) -> tuple[str, int, int]:
    censored_us = broker.levels.latency_p99_censored_us if broker.levels else 0
    return broker.leg, -censored_us, broker.broker_id


def _line(view: MinuteView, broker: BrokerSamples) -> BrokerLine:
    levels: BrokerMinuteLevels | None = broker.levels
    return BrokerLine(
        broker=_broker_view(view, broker.broker_id),
        leg=Leg(broker.leg),
        succeeded=f"{len(broker.latencies_us):,} of {broker.attempted:,}",
        failures=_format_failures(broker.failures, broker.agent_failures),
        p50=format_milliseconds(levels.latency_p50_us if levels else None),
        p99=format_milliseconds(levels.latency_p99_us if levels else None),
        p99_censored=format_milliseconds(levels.latency_p99_censored_us)
        if levels
        else describe_unmeasured(broker.agent_failures),
        slowest=", ".join(format_milliseconds(us) for us in broker.latencies_us[: -SLOWEST_SAMPLES - 1 : -1])
        or NO_VALUE,
    )


def _broker_view(view: MinuteView, broker_id: int) -> BrokerView:
    return BrokerView(view.cluster_id, broker_id, surrounding_view(view).shown, display=view.display)


def _split(row: Row) -> tuple[dict[str, int], dict[str, int]]:
    return split_failures(dict(row["failures"] or ()), (row["attempted"] or 0) - (row["succeeded"] or 0))


def _format_failures(counted: Mapping[str, int], uncounted: Mapping[str, int]) -> str:
    failures = Counter(counted) + Counter(uncounted)
    return ", ".join(f"{code} {times:,}" for code, times in sorted(failures.items())) or NO_VALUE


def describe_unmeasured(agent_failures: Iterable[str]) -> str:
    """Return that a broker-minute is not measured, and the agent's own faults if those are why."""
    faults = {fault for code in agent_failures if (fault := find_agent_fault(code))}
    reasons = ", ".join(sorted(fault.description for fault in faults))
    return f"{_UNMEASURED}: {reasons}" if reasons else _UNMEASURED
