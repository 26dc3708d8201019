"""The promised names and labels of metrics, and which of them PromQL expressions use."""

import re
from collections.abc import Iterable, Iterator

from tests.deployment.manifests import INFRA, Document, load_document

_OPERATIONS = {"cluster", "messaging_system", "messaging_operation_name"}

PROMISED: dict[str, set[str]] = {
    "fleetgauge_build_info": {"version", "process"},
    "process_start_time_seconds": set(),
    "process_resident_memory_bytes": set(),
    "process_virtual_memory_bytes": set(),
    "process_open_fds": set(),
    "process_max_fds": set(),
    "process_cpu_seconds_total": set(),
    "fleetgauge_part_faulty": {"part", "name", "reason"},
    # agent
    "fleetgauge_probes_total": {"cluster", "broker", "leg", "outcome"},
    "fleetgauge_probe_latency_seconds": {"cluster", "broker", "leg", "quantile"},
    "fleetgauge_probe_duration_seconds_bucket": {"cluster", "leg", "le"},
    "fleetgauge_probe_duration_seconds_sum": {"cluster", "leg"},
    "fleetgauge_probe_duration_seconds_count": {"cluster", "leg"},
    "messaging_client_operation_duration_seconds_bucket": {*_OPERATIONS, "le"},
    "messaging_client_operation_duration_seconds_sum": _OPERATIONS,
    "messaging_client_operation_duration_seconds_count": _OPERATIONS,
    "fleetgauge_agent_schedule_lag_seconds": {"cluster"},
    "fleetgauge_agent_pulse_timestamp_seconds": {"cluster"},
    "fleetgauge_agent_pulses_total": {"outcome"},
    "fleetgauge_brokers_expected": {"cluster"},
    "fleetgauge_agent_probes_left_out_total": {"cluster"},
    "fleetgauge_agent_stalled_seconds_total": set(),
    "fleetgauge_agent_clock_ahead_seconds": set(),
    "fleetgauge_agent_topic_changes_pending": {"cluster"},
    "fleetgauge_agent_answers_total": {"cluster", "broker", "outcome"},
    "fleetgauge_agent_answer_seconds": {"cluster", "broker", "step"},
    "fleetgauge_agent_bootstrap_seconds": {"cluster"},
    "fleetgauge_agent_throttled_seconds_total": {"cluster", "broker"},
    "fleetgauge_agent_certificate_expiry_timestamp_seconds": {"cluster", "broker"},
    "fleetgauge_agent_cluster_unreachable": {"cluster", "reason"},
    "fleetgauge_agent_own_faults": {"cluster", "reason"},
    "fleetgauge_agent_records_total": {"outcome"},
    "fleetgauge_agent_spool_records": set(),
    "fleetgauge_agent_spool_bytes": set(),
    "fleetgauge_agent_spool_max_bytes": set(),
    "fleetgauge_agent_spool_oldest_timestamp_seconds": set(),
    # watch
    "fleetgauge_broker_named": {"cluster", "broker"},
    "fleetgauge_broker_degraded": {"cluster", "broker"},
    "fleetgauge_findings_open": {"cluster", "kind"},
    "fleetgauge_watch_pulse_timestamp_seconds": {"cluster", "vantage"},
    "fleetgauge_watch_pulses_ignored_total": {"cluster", "vantage"},
    "fleetgauge_notifications_total": {"notifier", "outcome"},
    "fleetgauge_notifications_rejected": {"notifier"},
    "fleetgauge_notifications_waiting": {"notifier"},
    "fleetgauge_watch_active": set(),
    # recover
    "fleetgauge_mirror_kept_up_timestamp_seconds": {"source", "destination"},
    "fleetgauge_mirror_behind_records": {"source", "destination"},
    "fleetgauge_recovery_groups": {"active", "passive", "verdict"},
    "fleetgauge_mirror_late_seconds": {"source", "destination"},
    "fleetgauge_recovery_ready_groups": {"active", "passive"},
    "fleetgauge_recovery_findings": {"kind"},
    # probe, watch, recover and stream
    "fleetgauge_topic_changes_total": {"cluster", "topic", "change"},
    "fleetgauge_topic_records_lost_total": {"cluster", "topic", "count"},
    # stream
    "fleetgauge_batch_duration_seconds_bucket": {"le"},
    "fleetgauge_batch_duration_seconds_sum": set(),
    "fleetgauge_batch_duration_seconds_count": set(),
    "fleetgauge_records_total": {"fate"},
    "fleetgauge_batch_timestamp_seconds": set(),
    "fleetgauge_rows_changed_total": {"level"},
    "fleetgauge_quality_failures_total": {"expectation"},
    "fleetgauge_weeks_held_back": set(),
    # dash
    "fleetgauge_dash_answer_duration_seconds_bucket": {"page", "le"},
    "fleetgauge_dash_answer_duration_seconds_sum": {"page"},
    "fleetgauge_dash_answer_duration_seconds_count": {"page"},
    "fleetgauge_dash_table_readable": {"fleet", "table"},
    "fleetgauge_dash_data_timestamp_seconds": {"fleet"},
}
#: Labels that Prometheus adds to every scraped series.
TARGET_LABELS = {"instance", "job"}

RULES = INFRA / "prometheus/rules.yml"

_NAME = re.compile(r"(?<![\w:$])((?:\w+:)?fleetgauge_\w+(?::\w+)?)(?:\{([^}]*)\})?")
_LABEL = re.compile(r"(\w+)\s*[!=]")
_GROUPED = re.compile(r"\bby \(([^)]*)\)")


def load_rules() -> list[Document]:
    """Return the recording and alerting rules."""
    return [rule for group in load_document(RULES)["groups"] for rule in group["rules"]]


def load_alerts() -> list[Document]:
    """Return the alerting rules."""
    return [rule for rule in load_rules() if "alert" in rule]


def list_recorded_names() -> set[str]:
    """Return the names of the recorded series."""
    return {rule["record"] for rule in load_rules() if "record" in rule}


def parse_selectors(expression: str) -> Iterator[tuple[str, set[str]]]:
    """Yield every metric of an expression with the labels of its selector."""
    for name, braces in _NAME.findall(expression):
        yield name, set(_LABEL.findall(braces))


def find_unknown_names(expressions: Iterable[str]) -> list[str]:
    """Return the names and labels in expressions that are not promised."""
    return [
        f"{name} in {expression}"
        for expression in expressions
        for name in (*_find_unpromised_metrics(expression), *_find_unpromised_labels(expression))
    ]


def _find_unpromised_metrics(expression: str) -> Iterator[str]:
    for name, labels in parse_selectors(expression):
        if name not in PROMISED and name not in list_recorded_names():
            yield name
        elif name in PROMISED and labels - PROMISED[name] - TARGET_LABELS:
            yield f"{name}{labels - PROMISED[name]}"


def _find_unpromised_labels(expression: str) -> Iterator[str]:
    promised = TARGET_LABELS.union(*(labels for name, labels in PROMISED.items() if name in expression))
    if any(name in expression for name in list_recorded_names()):
        promised |= {"cluster", "leg", "vantage"}
    for labels in _GROUPED.findall(expression):
        yield from {label.strip() for label in labels.split(",")} - promised
