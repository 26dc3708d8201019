"""One minute of a cluster: its numbers, and each broker's samples behind them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from fleetgauge_core.slo.levels import BrokerMinuteLevels
from fleetgauge_dashboards.links import MINUTE, BrokerView, ClusterView, Leg, MinuteView, Span
from fleetgauge_dashboards.reader import ClusterWeek
from fleetgauge_dashboards.units import NOTHING, milliseconds, percent
from fleetgauge_dashboards.views.cluster import Number, verdict, week_span
from fleetgauge_dashboards.views.deciding_minutes import Row, worst_home
from fleetgauge_dashboards.views.samples import BrokerSamples, MinuteSamples, Source

#: Of each broker's samples, so many are written out; the file has all.
SLOWEST = 5
#: Minutes to either side of a minute that a link to its cluster shows.
_AROUND = 30
_UNMEASURED = "not measured"

#: Where the samples were found, for a person.
SOURCES: dict[Source, str] = {
    "bronze": "Every sample that the probes sent.",
    "evidence": "The records have expired; these samples were kept as evidence when the week closed.",
    "late": "All vantages sent too late in this minute for their samples to count; their records have them.",
    "expired": "The samples have expired, and none of this minute were kept as evidence: it did not "
    "decide its week. What remains are its numbers, broker by broker.",
}


@dataclass(frozen=True, slots=True)
class BrokerLine:
    """One line of the minute's table, as text."""

    broker: BrokerView
    leg: Leg
    succeeded: str
    failures: str
    p50: str
    p99: str
    p99_censored: str
    slowest: str


def week_of(own: Sequence[ClusterWeek], minute: datetime, zone: str) -> ClusterWeek | None:
    """Of a cluster's weeks the one with the minute."""
    spans = ((week, week_span(week.week, zone)) for week in own)
    return next((week for week, span in spans if span.start <= minute < span.end), None)


def around(view: MinuteView) -> ClusterView:
    """The cluster in the minutes before and after."""
    span = Span(view.minute - _AROUND * MINUTE, view.minute + (_AROUND + 1) * MINUTE)
    return ClusterView(view.cluster_id, shown=span, lens=view.lens)


def numbers(minute: Row | None, objective_us: int | None) -> tuple[Number, ...]:
    """Silver's row of the minute; no number where it holds none."""
    if minute is None:
        return ()
    censored, availability = minute["latency_p99_censored_us"], minute["availability"]
    unknown = censored is None or objective_us is None
    return (
        Number(
            "Latency p99",
            milliseconds(minute["latency_p99_us"]),
            verdict(unknown, (censored or 0) <= (objective_us or 0)),
            (
                f"of {_broker(minute['latency_worst_home'])}, objective {milliseconds(objective_us)}",
                f"failures counted: {milliseconds(censored)}, {_broker(worst_home(minute))}",
            ),
            "minute_latency",
        ),
        Number(
            "Availability of the worst broker",
            percent(availability),
            None,
            (
                f"of {_broker(minute['availability_worst_home'])}",
                f"all brokers pooled: {percent(minute['availability_pooled'])}",
            ),
            "minute_availability",
        ),
        Number(
            "Measured",
            f"{minute['brokers_measured'] or 0:,} of {minute['brokers_expected'] or 0:,}",
            None,
            ("brokers, client leg", "a broker is measured from 50 attempts on"),
            "minute_measured",
        ),
    )


def lines(view: MinuteView, samples: MinuteSamples) -> tuple[BrokerLine, ...]:
    """The client leg first, in each the worst broker first."""
    return tuple(_line(view, one) for one in sorted(samples.brokers, key=_worst_first))


def lines_without_samples(view: MinuteView, rows: Iterable[Row]) -> tuple[BrokerLine, ...]:
    """The same by silver's rows, which know of all samples the slowest alone."""
    worst_first = sorted(
        rows, key=lambda row: (row["leg"], -(row["latency_p99_censored_us"] or 0), row["broker_id"])
    )
    return tuple(
        BrokerLine(
            broker=_broker_then(view, row["broker_id"]),
            leg=Leg(row["leg"]),
            succeeded=f"{row['succeeded'] or 0:,} of {row['attempted'] or 0:,}",
            failures=_counted(dict(row["failures"] or ())),
            p50=milliseconds(row["latency_p50_us"]),
            p99=milliseconds(row["latency_p99_us"]),
            p99_censored=milliseconds(row["latency_p99_censored_us"]) if row["measured"] else _UNMEASURED,
            slowest=milliseconds(row["latency_max_us"]),
        )
        for row in worst_first
    )


def of_leg(samples: MinuteSamples, leg: Leg) -> tuple[BrokerSamples, ...]:
    return tuple(one for one in samples.brokers if one.leg == leg)


def _worst_first(one: BrokerSamples) -> tuple[str, int, int]:
    worst = one.levels.latency_p99_censored_us if one.levels else 0
    return one.leg, -worst, one.broker_id


def _line(view: MinuteView, one: BrokerSamples) -> BrokerLine:
    levels: BrokerMinuteLevels | None = one.levels
    return BrokerLine(
        broker=_broker_then(view, one.broker_id),
        leg=Leg(one.leg),
        succeeded=f"{len(one.latencies_us):,} of {one.attempted:,}",
        failures=_counted(one.failures),
        p50=milliseconds(levels.latency_p50_us if levels else None),
        p99=milliseconds(levels.latency_p99_us if levels else None),
        p99_censored=milliseconds(levels.latency_p99_censored_us) if levels else _UNMEASURED,
        slowest=", ".join(milliseconds(us) for us in one.latencies_us[: -SLOWEST - 1 : -1]) or NOTHING,
    )


def _broker_then(view: MinuteView, broker_id: int) -> BrokerView:
    return BrokerView(view.cluster_id, broker_id, around(view).shown, lens=view.lens)


def _counted(failures: Mapping[str, int]) -> str:
    return ", ".join(f"{code} {times:,}" for code, times in sorted(failures.items())) or NOTHING


def _broker(broker_id: int | None) -> str:
    return NOTHING if broker_id is None else f"broker {broker_id}"
