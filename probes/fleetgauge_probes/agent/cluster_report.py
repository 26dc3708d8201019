"""The results of one cluster's probing, for the report publisher."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from fleetgauge_core.contract import ProbeMinute, ProbePulse
from fleetgauge_core.contract.failure_codes import AgentFault


@dataclass(frozen=True, slots=True)
class ClusterReport:
    """One cluster's results since its previous report.

    ``open_minutes`` holds interim records of some minutes that are still open; ``pulse`` is None between
    two pulses. ``excluded_probes`` counts probes of the closed minutes that measured this process instead of
    their broker. ``pending_topic_actions`` counts changes to the probe topic that are due but were refused,
    or that are left to an administrator because the topic is not managed. ``connection_outcomes`` counts
    cold connection attempts by broker and outcome. ``unreachable_reason`` is None while the cluster lists
    its brokers. ``throttled_s`` is the time by broker for which a quota delayed probes, ``agent_faults`` the
    agent's own faults for which brokers are not measured.
    """

    cluster_id: str
    closed_minutes: tuple[ProbeMinute, ...]
    open_minutes: tuple[ProbeMinute, ...]
    pulse: ProbePulse | None
    excluded_probes: int
    pending_topic_actions: int
    connection_outcomes: Mapping[tuple[int, str], int]
    certificate_expiries: Mapping[int, datetime]
    unreachable_reason: str | None
    throttled_s: Mapping[int, float]
    agent_faults: frozenset[AgentFault]
