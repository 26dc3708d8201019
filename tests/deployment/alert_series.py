"""Series of a healthy fleet, and tests of promtool that expect alerts of series."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isnan, nan

from tests.deployment.manifests import Document

#: The value of a series by the second, None where Prometheus has none.
Values = Callable[[int], float | None]
Series = Mapping[str, Values]

STEP_S = 60
END_S = 40 * 60
LONG_AGO = -86_400.0


def constant(value: float) -> Values:
    """Return a series that keeps a value."""
    return lambda _: value


def count(per_minute: float) -> Values:
    """Return a counter that rises evenly, and has done so for long."""
    return lambda second: 1_000 + per_minute * second / 60


def now(second: int) -> float:
    """Return the time itself: a timestamp that is always the present one."""
    return float(second)


def change(at_s: int, before: Values, after: Values) -> Values:
    """Return a series that is one before a second, and another one from then on."""
    return lambda second: (before if second < at_s else after)(second)


def is_missing(_: int) -> None:
    """Return no value: a series that Prometheus does not have."""


NOT_A_NUMBER = constant(nan)

_PULSES = "fleetgauge_watch_pulse_timestamp_seconds"
_KINDS = ("BROKER_DOWN", "CLUSTER_DOWN", "PATH", "VANTAGE_ILL", "NO_DATA")


def with_labels(selector: str, instance: str) -> str:
    """Return the name and labels of a series with those that Prometheus adds for its target."""
    name, _, labels = selector.rstrip("}").partition("{")
    return f'{name}{{{labels}{"," if labels else ""}instance="{instance}",job="fleetgauge"}}'


def _export(instance: str, series: Series) -> dict[str, Values]:
    return {with_labels(selector, instance): values for selector, values in series.items()}


def _process(instance: str, process: str, series: Series) -> dict[str, Values]:
    common = {
        "up": constant(1),
        f'fleetgauge_build_info{{process="{process}"}}': constant(1),
        "process_start_time_seconds": constant(LONG_AGO),
    }
    return _export(instance, {**common, **series})


def _agent(instance: str, cluster: str) -> dict[str, Values]:
    broker = f'cluster="{cluster}",broker="1"'
    series = {
        f'fleetgauge_agent_schedule_lag_seconds{{cluster="{cluster}"}}': constant(0.002),
        "fleetgauge_agent_spool_oldest_timestamp_seconds": NOT_A_NUMBER,
        "fleetgauge_agent_clock_ahead_seconds": constant(0.001),
        f'fleetgauge_agent_topic_changes_pending{{cluster="{cluster}"}}': constant(0),
        f'fleetgauge_agent_answers_total{{{broker},outcome="answered"}}': count(60),
        f'fleetgauge_agent_answers_total{{{broker},outcome="certificate_expired"}}': constant(1_000),
        f"fleetgauge_agent_throttled_seconds_total{{{broker}}}": constant(1_000),
        f"fleetgauge_agent_certificate_expiry_timestamp_seconds{{{broker}}}": constant(9e6),
    }
    return _process(instance, "probe", series)


def _watch(instance: str, *, leads: bool) -> dict[str, Values]:
    series = {
        "fleetgauge_watch_active": constant(leads),
        'fleetgauge_notifications_total{notifier="oncall",outcome="sent"}': count(1),
        'fleetgauge_notifications_total{notifier="oncall",outcome="failed"}': constant(1_000),
    }
    return _process(instance, "watch", series)


def _leader(instance: str) -> dict[str, Values]:
    """Return the series that a watch has only while it leads."""
    series: dict[str, Values] = {'fleetgauge_notifications_waiting{notifier="oncall"}': constant(0)}
    for cluster in ("orders", "payments"):
        for kind in _KINDS:
            series[f'fleetgauge_findings_open{{cluster="{cluster}",kind="{kind}"}}'] = constant(0)
        for condition in ("named", "degraded"):
            series[f'fleetgauge_broker_{condition}{{cluster="{cluster}",broker="1"}}'] = constant(0)
    for cluster, vantage in (("orders", "a"), ("payments", "a"), ("payments", "b")):
        series[f'{_PULSES}{{cluster="{cluster}",vantage="{vantage}"}}'] = now
    return _export(instance, series)


_STREAM: Series = {
    "fleetgauge_batch_timestamp_seconds": now,
    'fleetgauge_records_total{fate="stored"}': count(12),
    'fleetgauge_records_total{fate="quarantined"}': constant(1_000),
    'fleetgauge_quality_failures_total{expectation="availability_max"}': constant(1_000),
}

#: By process, what it exports in a fleet of two clusters in which nothing is wrong, but once was.
HEALTHY: Mapping[str, Series] = {
    "agent-a": _agent("agent-a", "orders"),
    "agent-b": _agent("agent-b", "payments"),
    "watch-a": _watch("watch-a", leads=True) | _leader("watch-a"),
    "watch-b": _watch("watch-b", leads=False),
    "stream": _process("stream", "stream", _STREAM),
}


def healthy_fleet(*changes: Series) -> dict[str, Values]:
    """Return the series of a healthy fleet with those of ``changes`` in addition or in their place."""
    fleet: dict[str, Values] = {}
    for series in (*HEALTHY.values(), *changes):
        fleet |= series
    return fleet


def without(process: str, from_s: int = 0) -> dict[str, Values]:
    """Return the series of a process that ends at a second, or never started, and what follows from that."""
    series = {name: change(from_s, values, is_missing) for name, values in HEALTHY[process].items()}
    # Prometheus goes on asking for its metrics.
    series[with_labels("up", process)] = change(from_s, constant(1), constant(0))
    if process == "agent-a":
        pulses = with_labels(f'{_PULSES}{{cluster="orders",vantage="a"}}', "watch-a")
        series[pulses] = change(from_s, now, constant(from_s) if from_s else is_missing)
        no_data = with_labels('fleetgauge_findings_open{cluster="orders",kind="NO_DATA"}', "watch-a")
        series[no_data] = change(from_s + STEP_S, constant(0), constant(1))
    if process == "watch-a":
        series |= without("watch-b", from_s)
    return series


def take_over(at_s: int) -> dict[str, Values]:
    """Return the series of both watches of which the standby leads from a second on, as the other ends."""
    series = {name: change(at_s, values, is_missing) for name, values in HEALTHY["watch-a"].items()}
    series |= {name: change(at_s, is_missing, values) for name, values in _leader("watch-b").items()}
    series[with_labels("fleetgauge_watch_active", "watch-b")] = change(at_s, constant(0), constant(1))
    return series


@dataclass(frozen=True, slots=True)
class AlertTest:
    """A test of promtool: series, and the names of all alerts that fire at some seconds."""

    name: str
    series: Series
    firing: Mapping[int, frozenset[str]]

    def document(self) -> Document:
        """Return the test in promtool's format."""
        seconds = range(0, END_S + 1, STEP_S)
        return {
            "name": self.name,
            "interval": f"{STEP_S}s",
            "input_series": [
                {"series": name, "values": _notate([values(second) for second in seconds])}
                for name, values in self.series.items()
            ],
            "promql_expr_test": [
                {
                    "expr": 'group by (alertname) (ALERTS{alertstate="firing"})',
                    "eval_time": f"{second}s",
                    "exp_samples": [
                        {"labels": f'{{alertname="Fleetgauge{alert}"}}', "value": 1}
                        for alert in sorted(alerts)
                    ],
                }
                for second, alerts in self.firing.items()
            ],
        }


def _notate(values: list[float | None]) -> str:
    """Return the values in promtool's notation; a series that ends becomes stale, as by a failed scrape."""
    words = [_notate_value(value) for value in values]
    return " ".join(
        "stale" if word == "_" and position and words[position - 1] != "_" else word
        for position, word in enumerate(words)
    )


def _notate_value(value: float | None) -> str:
    if value is None:
        return "_"
    return "NaN" if isnan(value) else f"{value:g}"
