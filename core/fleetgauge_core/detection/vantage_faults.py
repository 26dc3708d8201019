"""Faults of a vantage or of its network path to a broker: what one vantage observes and the others do not.

A vantage whose agent reports a fault of its own (a missing permission, expired credentials, its host) is ill
even if it is the only one.

A vantage is contradicted about a broker if it does not reach the broker while most other vantages with a
later observation reach it. It remains contradicted until it reaches the broker itself, sends no more pulses,
or most other vantages do not reach the broker either.
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from fleetgauge_core.contract import BrokerPulse, ProbePulse
from fleetgauge_core.detection.broker_liveness import VantageObservation, is_majority
from fleetgauge_core.detection.thresholds import Thresholds

#: A vantage and a broker.
VantagePath = tuple[str, int]


class AgentFaultReport(NamedTuple):
    """An agent's fault of its own, as its pulses report it; open once they have done so for long enough."""

    fault: str
    broker_ids: tuple[int, ...]
    since: datetime
    last_at: datetime | None
    """When it was last reported; None if it was restored."""
    is_open: bool


@dataclass(frozen=True, slots=True)
class VantageFaults:
    """The contradicted paths of a cluster, the vantages that are contradicted about most brokers, and those
    whose agents report a fault of their own."""

    contradicted_paths: frozenset[VantagePath] = frozenset()
    faulty_vantages: frozenset[str] = frozenset()
    agent_faults: Mapping[str, AgentFaultReport] = field(default_factory=dict)
    """By vantage."""

    @property
    def ill_vantages(self) -> frozenset[str]:
        """The vantages that do not measure the cluster, for either reason."""
        open_faults = (vantage for vantage, report in self.agent_faults.items() if report.is_open)
        return self.faulty_vantages.union(open_faults)

    def record_pulse(self, pulse: ProbePulse, at: datetime, limits: Thresholds) -> "VantageFaults":
        """Return the faults after a pulse, by which an agent reports faults of its own or none.

        An open one ends once it was not reported for a while, also because its vantage became silent.
        """
        faults = {broker.broker_id: fault for broker in pulse.brokers if (fault := _agent_fault(broker))}
        if not faults and not self.agent_faults:
            return self
        reports = {
            vantage: report._replace(last_at=report.last_at or at)
            for vantage, report in self.agent_faults.items()
        }
        before = reports.pop(pulse.vantage, None)
        if faults:
            since = before.since if before and (before.is_open or limits.is_fresh(before.since, at)) else at
            is_open = bool(before and before.is_open) or at - since >= limits.agent_fault
            values = list(faults.values())
            fault = max(sorted(set(values)), key=values.count)
            reports[pulse.vantage] = AgentFaultReport(fault, tuple(sorted(faults)), since, at, is_open)
        elif before and before.is_open:
            reports[pulse.vantage] = before
        kept = {
            vantage: report
            for vantage, report in reports.items()
            if report.last_at is None or at - report.last_at < limits.steady
        }
        return replace(self, agent_faults=kept)

    def drop_timestamps(self, now: datetime) -> "VantageFaults":
        """Return the faults as after a restart, for a clock that was set back to ``now``."""
        reports = {
            vantage: report._replace(since=now, last_at=None)
            for vantage, report in self.agent_faults.items()
            if report.is_open
        }
        return replace(self, agent_faults=reports)

    def evidence(self, vantage: str) -> dict[str, object]:
        """Return the evidence of an ill vantage: the brokers that it does not measure, and why."""
        report = self.agent_faults.get(vantage)
        if report is None or not report.is_open:
            return {"vantage": vantage, "brokers": self.list_unreached_brokers(vantage)}
        return {"vantage": vantage, "brokers": list(report.broker_ids), "agent_fault": report.fault}

    @property
    def faulty_paths(self) -> frozenset[VantagePath]:
        """The contradicted paths of vantages that are not faulty themselves."""
        return frozenset(path for path in self.contradicted_paths if path[0] not in self.faulty_vantages)

    def list_unreached_brokers(self, vantage: str) -> list[int]:
        """Return the brokers about which the vantage is contradicted, ascending."""
        return sorted(broker_id for source, broker_id in self.contradicted_paths if source == vantage)

    def vantages_by_broker(self) -> dict[int, frozenset[str]]:
        """Return the contradicted vantages by broker."""
        broker_ids = {broker_id for _, broker_id in self.contradicted_paths}
        return {
            broker_id: frozenset(
                vantage for vantage, target in self.contradicted_paths if target == broker_id
            )
            for broker_id in broker_ids
        }

    def update(
        self,
        observations: Mapping[int, Mapping[str, VantageObservation]],
        heard_vantages: Set[str],
        limits: Thresholds,
    ) -> "VantageFaults":
        """Return the faults that follow from fresh observations, by broker and vantage.

        Restored faults of a vantage that has not sent a pulse since are kept.
        """
        all_reachable = all(
            observation.unreachable_since is None
            for by_vantage in observations.values()
            for observation in by_vantage.values()
        )
        if all_reachable and not self.contradicted_paths and not self.faulty_vantages:
            # The usual case; a large fleet sends thousands of pulses per second.
            return self
        contradicted = {
            (vantage, broker_id)
            for broker_id, by_vantage in observations.items()
            for vantage in by_vantage
            if _is_contradicted(vantage, by_vantage, (vantage, broker_id) in self.contradicted_paths, limits)
        }
        observed_brokers = {
            vantage: sum(vantage in by_vantage for by_vantage in observations.values())
            for vantage in heard_vantages
        }
        contradicted_brokers = {
            vantage: sum(source == vantage for source, _ in contradicted) for vantage in heard_vantages
        }
        faulty = frozenset(
            vantage
            for vantage in heard_vantages
            if contradicted_brokers[vantage] > 1
            and 2 * contradicted_brokers[vantage] > observed_brokers[vantage]
        )
        not_heard = {path for path in self.contradicted_paths if path[0] not in heard_vantages}
        return replace(
            self,
            contradicted_paths=frozenset(contradicted | not_heard),
            faulty_vantages=faulty | (self.faulty_vantages - heard_vantages),
        )

    def restrict_to(self, vantages: Set[str]) -> "VantageFaults":
        """Return the faults of these vantages only: a restored vantage may never send a pulse again."""
        with_faults = self.faulty_vantages.union(
            self.agent_faults, (path[0] for path in self.contradicted_paths)
        )
        if with_faults <= vantages:
            return self
        paths = frozenset(path for path in self.contradicted_paths if path[0] in vantages)
        reports = {vantage: report for vantage, report in self.agent_faults.items() if vantage in vantages}
        return VantageFaults(paths, self.faulty_vantages & vantages, reports)

    def with_restored_finding(
        self, vantage: str, broker_ids: Iterable[int], *, is_vantage_faulty: bool, is_open: bool
    ) -> "VantageFaults":
        """Return the faults after a stored finding: of a faulty vantage and its brokers, or of one path."""
        paths = frozenset((vantage, broker_id) for broker_id in broker_ids)
        if not is_vantage_faulty:
            contradicted = self.contradicted_paths
            return replace(self, contradicted_paths=contradicted | paths if is_open else contradicted - paths)
        other_paths = frozenset(path for path in self.contradicted_paths if path[0] != vantage)
        other_vantages = self.faulty_vantages - {vantage}
        return replace(
            self,
            contradicted_paths=other_paths | paths,
            faulty_vantages=other_vantages | {vantage} if is_open else other_vantages,
        )

    def with_restored_agent_fault(
        self, vantage: str, fault: str, broker_ids: Iterable[int], at: datetime, *, is_open: bool
    ) -> "VantageFaults":
        """Return the faults after a stored finding of a vantage whose agent reported a fault of its own."""
        others = {other: report for other, report in self.agent_faults.items() if other != vantage}
        if is_open:
            others[vantage] = AgentFaultReport(fault, tuple(broker_ids), at, None, is_open=True)
        return replace(self, agent_faults=others)


def _agent_fault(broker: BrokerPulse) -> str | None:
    """Return the agent's own fault for which it does not measure a leg of the broker, or reach it at all."""
    legs = (leg.agent_fault for leg in broker.legs if leg.agent_fault)
    return next(legs, broker.connection_fault)


def _is_contradicted(
    vantage: str,
    by_vantage: Mapping[str, VantageObservation],
    was_contradicted: bool,
    limits: Thresholds,
) -> bool:
    own = by_vantage[vantage]
    others = [observation for other, observation in by_vantage.items() if other != vantage]
    if own.unreachable_since is None:
        return False
    if was_contradicted:
        return not is_majority(other.signs.is_unreachable for other in others)
    # The other's observation must be later than this vantage's loss of the broker, and this vantage's
    # observation later than the broker's return as seen by the other.
    return is_majority(
        other.reachable_since is not None
        and other.at - own.unreachable_since >= limits.agreed
        and own.at - other.reachable_since >= limits.agreed
        for other in others
    )
