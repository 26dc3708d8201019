"""For each alert: what it must notice, and what fires where its series are NaN, missing or stale."""

from collections.abc import Iterator
from dataclasses import dataclass

from tests.deployment.alert_series import (
    HEALTHY,
    NOT_A_NUMBER,
    STEP_S,
    AlertTest,
    Series,
    Values,
    change,
    constant,
    count,
    healthy_fleet,
    is_missing,
    now,
    with_labels,
    without,
)

#: What fires in a healthy fleet.
HEALTHY_ALERTS = frozenset({"Heartbeat"})

FAULT_S = 5 * 60
DURING_S = 20 * 60
GONE_S = 21 * 60
LATER_S = 39 * 60

#: What fires instead of a process's alerts if it has never run, and what does after it has ended.
WITHOUT_PROCESS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "agent-a": (
        frozenset({"NoData", "Heartbeat"}),
        frozenset({"NoData", "AgentSilent", "TargetDown", "Heartbeat"}),
    ),
    "watch-a": (frozenset({"WatchDown"}), frozenset({"WatchDown", "TargetDown"})),
    "stream": (
        frozenset({"StreamStalled", "Heartbeat"}),
        frozenset({"StreamStalled", "TargetDown", "Heartbeat"}),
    ),
}


@dataclass(frozen=True, slots=True)
class AlertCase:
    """The series of one process by which an alert fires for what its runbook names.

    If they are NaN, it fires as well; or nothing does, and ``why_silent`` is the reason; or the alerts
    ``instead`` do.
    """

    alert: str
    process: str
    fault: Series
    why_silent: str = ""
    instead: frozenset[str] = frozenset()

    def tests(self) -> Iterator[AlertTest]:
        """Yield a test in which the alert fires until its process ends, and one with NaN."""
        fault = self._find_series()
        gone = without(self.process, GONE_S)
        ending = {name: change(GONE_S, values, gone.get(name, is_missing)) for name, values in fault.items()}
        yield AlertTest(
            f"{self.alert} fires, and its process ends",
            healthy_fleet(gone, ending),
            {
                FAULT_S - STEP_S: HEALTHY_ALERTS,
                DURING_S: HEALTHY_ALERTS | {self.alert},
                LATER_S: WITHOUT_PROCESS[self.process][1],
            },
        )
        alerts = self.instead or (HEALTHY_ALERTS if self.why_silent else HEALTHY_ALERTS | {self.alert})
        series = healthy_fleet(dict.fromkeys(fault, NOT_A_NUMBER))
        yield AlertTest(f"{self.alert} with NaN", series, {DURING_S: alerts, LATER_S: alerts})

    def _find_series(self) -> dict[str, Values]:
        """Return the series by their full names: healthy, or missing, for 5 minutes, and then faulty."""
        series: dict[str, Values] = {}
        for selector, faulty in self.fault.items():
            name = with_labels(selector, self.process)
            series[name] = change(FAULT_S, HEALTHY[self.process].get(name, is_missing), faulty)
        return series


_FLAG = "a number that its process has counted or measured"
_COUNTER = "a counter is never NaN"

_ORDERS = 'cluster="orders",broker="1"'
_FINDINGS = "fleetgauge_findings_open"
_PULSES = "fleetgauge_watch_pulse_timestamp_seconds"
_NOTIFICATIONS = "fleetgauge_notifications_total"

CASES = (
    AlertCase("BrokerNamed", "watch-a", {f"fleetgauge_broker_named{{{_ORDERS}}}": constant(1)}, _FLAG),
    AlertCase("BrokerDegraded", "watch-a", {f"fleetgauge_broker_degraded{{{_ORDERS}}}": constant(1)}, _FLAG),
    AlertCase(
        "ClusterDown", "watch-a", {f'{_FINDINGS}{{cluster="orders",kind="CLUSTER_DOWN"}}': constant(1)}, _FLAG
    ),
    AlertCase("VantageIll", "watch-a", {f'{_FINDINGS}{{cluster="orders",kind="PATH"}}': constant(2)}, _FLAG),
    AlertCase("NoData", "watch-a", {f'{_FINDINGS}{{cluster="orders",kind="NO_DATA"}}': constant(1)}, _FLAG),
    AlertCase("AgentSilent", "watch-a", {f'{_PULSES}{{cluster="payments",vantage="b"}}': constant(FAULT_S)}),
    AlertCase("WatchDown", "watch-a", {"fleetgauge_watch_active": constant(0)}),
    AlertCase(
        "Heartbeat",
        "watch-a",
        {
            f'{_PULSES}{{cluster="orders",vantage="a"}}': now,
            f'{_PULSES}{{cluster="payments",vantage="a"}}': now,
            f'{_PULSES}{{cluster="payments",vantage="b"}}': now,
        },
        instead=frozenset({"AgentSilent"}),
    ),
    AlertCase("TargetDown", "stream", {"up": constant(0)}, "Prometheus writes 0 and 1 alone"),
    AlertCase(
        "NotificationsFailing",
        "watch-a",
        {f'{_NOTIFICATIONS}{{notifier="oncall",outcome="failed"}}': count(1)},
        _COUNTER,
    ),
    AlertCase(
        "NotificationsWait",
        "watch-a",
        {'fleetgauge_notifications_waiting{notifier="oncall"}': constant(2)},
        _FLAG,
    ),
    AlertCase(
        "PartFaulty",
        "agent-a",
        {'fleetgauge_part_faulty{part="cluster",name="orders",reason="credentials"}': constant(1)},
        _FLAG,
    ),
    AlertCase(
        "AgentOwnFault",
        "agent-a",
        {'fleetgauge_agent_own_faults{cluster="orders",reason="rights"}': constant(2)},
        _FLAG,
    ),
    AlertCase(
        "TopicRecordsLost",
        "stream",
        {'fleetgauge_topic_records_lost_total{cluster="telemetry",topic="probe-minutes"}': count(1)},
        _COUNTER,
    ),
    AlertCase(
        "AgentLate",
        "agent-a",
        {'fleetgauge_agent_schedule_lag_seconds{cluster="orders"}': constant(0.25)},
        _FLAG,
    ),
    AlertCase(
        "RecordsWait",
        "agent-a",
        {"fleetgauge_agent_spool_oldest_timestamp_seconds": constant(FAULT_S)},
        "the spool is empty",
    ),
    AlertCase("AgentClockOff", "agent-a", {"fleetgauge_agent_clock_ahead_seconds": constant(-3_600)}, _FLAG),
    AlertCase(
        "ProbeTopicAstray",
        "agent-a",
        {'fleetgauge_agent_topic_changes_pending{cluster="orders"}': constant(2)},
        _FLAG,
    ),
    AlertCase(
        "ClusterUnreachable",
        "agent-a",
        {'fleetgauge_agent_cluster_unreachable{cluster="orders",reason="authentication"}': constant(1)},
        _FLAG,
    ),
    AlertCase(
        "BrokerTurnsAway",
        "agent-a",
        {f'fleetgauge_agent_answers_total{{{_ORDERS},outcome="certificate_expired"}}': count(60)},
        _COUNTER,
    ),
    AlertCase(
        "Throttled",
        "agent-a",
        {f"fleetgauge_agent_throttled_seconds_total{{{_ORDERS}}}": count(3)},
        _COUNTER,
    ),
    AlertCase(
        "CertificateEnds",
        "agent-a",
        {f"fleetgauge_agent_certificate_expiry_timestamp_seconds{{{_ORDERS}}}": constant(86_400)},
        "an expiry that is unknown is absent",
    ),
    AlertCase("StreamStalled", "stream", {"fleetgauge_batch_timestamp_seconds": constant(FAULT_S)}),
    AlertCase(
        "QuarantineGrowing", "stream", {'fleetgauge_records_total{fate="quarantined"}': count(1)}, _COUNTER
    ),
    AlertCase(
        "QualityGateFailed",
        "stream",
        {'fleetgauge_quality_failures_total{expectation="availability_max"}': count(1)},
        _COUNTER,
    ),
)


def missing_process_tests() -> Iterator[AlertTest]:
    """Yield a test for each process that never started."""
    for process, (never, _) in WITHOUT_PROCESS.items():
        series = healthy_fleet(without(process))
        yield AlertTest(f"{process} never started", series, {DURING_S: never, LATER_S: never})
