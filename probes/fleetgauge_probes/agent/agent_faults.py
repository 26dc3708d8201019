"""Which failures are the agent's own, so that no broker is blamed for them.

Motivation: a broken broker can refuse with the same codes as a healthy one whose administrator took a
permission of the agent away. A code alone therefore does not excuse a broker.

Approach: permissions, credentials and settings of a topic are the same at every broker. A refusal is the
agent's own fault unless other brokers keep accepting the same kind of request. A change takes a few seconds
to reach every broker, so a broker that begins to refuse alone, or goes on while others accept again, is
excused for that long. A broker gets this time once: the next time only after all brokers refused as it did.
"""

import logging
from collections.abc import Mapping, Set
from typing import NamedTuple

from fleetgauge_core.contract.failure_codes import AgentFault, find_agent_fault

_log = logging.getLogger("fleetgauge.probe")

_SECOND_NS = 1_000_000_000
#: Each broker is asked every 600 ms on each leg, and once a second on a cold connection.
_RECENT_NS = 2 * _SECOND_NS
#: A change of a permission or a setting reaches every broker within less.
_AGREEMENT_NS = 5 * _SECOND_NS
#: A fault that was not seen for so long has ended; until then a line in the log would only repeat itself.
_ENDED_AFTER_NS = 30 * _SECOND_NS
#: Longer than the lifetime of any probe and of its minute.
_RETENTION_NS = 300 * _SECOND_NS


class ProbeFailure(NamedTuple):
    """Why a probe failed: its code, and the agent's own fault if the failure does not count."""

    code: str
    fault: AgentFault | None = None


class RefusalJudge:
    """Compares what the brokers of one cluster answer to one kind of request.

    All times are uptimes in nanoseconds. It has no lock: its owner serializes access.
    """

    def __init__(self) -> None:
        """Start without any answers."""
        self._accepted_ns: dict[int, int] = {}
        self._agreed: set[int] = set()
        self._contradicted_since_ns: dict[int, int] = {}

    def record_acceptance(self, broker_id: int, at_ns: int) -> None:
        """Record that the broker accepted a request."""
        if broker_id in self._agreed:
            # All brokers refused, and this one followed those that accept again: the change is over.
            self._agreed.discard(broker_id)
            if at_ns - self._contradicted_since_ns.get(broker_id, at_ns) < _AGREEMENT_NS:
                self._contradicted_since_ns.pop(broker_id, None)
        self._accepted_ns[broker_id] = at_ns

    def find_fault(self, broker_id: int, code: str, at_ns: int) -> AgentFault | None:
        """Return the agent's own fault for which the broker refused with this code, or None if it failed.

        The broker's own acceptances do not excuse it: it may refuse only some of the requests.
        """
        fault = find_agent_fault(code)
        if fault is None or not fault.needs_agreement:
            return fault
        others_accept = any(
            at_ns - accepted_ns < _RECENT_NS
            for other_id, accepted_ns in self._accepted_ns.items()
            if other_id != broker_id
        )
        if not others_accept:
            self._agreed.add(broker_id)
            self._contradicted_since_ns.pop(broker_id, None)
            return fault
        since_ns = self._contradicted_since_ns.setdefault(broker_id, at_ns)
        return fault if at_ns - since_ns < _AGREEMENT_NS else None


class FaultPeriods:
    """The periods in which probes of one leg of a broker fail by the agent's own fault.

    A probe that waited during such a period and succeeded late measures the agent as well.
    """

    def __init__(self) -> None:
        """Start without a period."""
        self.failure: ProbeFailure | None = None
        """The failure of the present period; None outside of one."""
        self._since_ns = self._latest_ns = 0
        self._periods: tuple[tuple[int, int, str], ...] = ()

    def begin(self, at_ns: int, failure: ProbeFailure) -> None:
        """Record that probes fail by the agent's own fault from ``at_ns`` on, or still do in a period."""
        if self.failure is None:
            self.failure, self._since_ns, self._latest_ns = failure, at_ns, at_ns
        self._latest_ns = max(at_ns, self._latest_ns)

    def end(self, at_ns: int, due_ns: int) -> None:
        """End the present period at ``at_ns``, by a probe that was due in it."""
        if self.failure is not None and due_ns >= self._since_ns:
            kept = [period for period in self._periods if at_ns - period[1] < _RETENTION_NS]
            self._periods = (*kept, (self._since_ns, max(at_ns, self._since_ns), self.failure.code))
            self.failure = None

    def lapse(self, now_ns: int) -> None:
        """End a period in which no probe has failed for long: none may be due that could end it."""
        if now_ns - self._latest_ns > _ENDED_AFTER_NS:
            self.end(self._latest_ns, self._latest_ns)

    def measure(self, start_ns: int, end_ns: int) -> tuple[int, str]:
        """Return how much of an interval was in such periods, and the failure code of the longest."""
        if self.failure is None and not self._periods:
            return 0, ""
        present = ((self._since_ns, end_ns, self.failure.code),) if self.failure else ()
        overlaps = [
            (min(end, end_ns) - max(start, start_ns), code) for start, end, code in (*self._periods, *present)
        ]
        overlaps = [(overlap_ns, code) for overlap_ns, code in overlaps if overlap_ns > 0]
        return sum(overlap_ns for overlap_ns, _ in overlaps), max(overlaps, default=(0, ""))[1]


class AgentFaultLog:
    """Logs when faults of the agent's own begin and end for one cluster. For use by a single thread."""

    def __init__(self, cluster_id: str) -> None:
        """Start without faults."""
        self._cluster_id = cluster_id
        self._seen_ns: dict[AgentFault, int] = {}

    def update(self, faults: Mapping[AgentFault, Set[str]], now_ns: int) -> frozenset[AgentFault]:
        """Record the faults that hold now, with their failure codes; return those that have not ended."""
        for fault, codes in faults.items():
            if fault not in self._seen_ns:
                shown = f" ({', '.join(sorted(codes))})" if codes else ""
                _log.error(
                    "%s: not measured, because %s%s: %s",
                    self._cluster_id,
                    fault.description,
                    shown,
                    fault.remedy,
                )
            self._seen_ns[fault] = now_ns
        for fault, seen_ns in list(self._seen_ns.items()):
            if now_ns - seen_ns > _ENDED_AFTER_NS:
                del self._seen_ns[fault]
                _log.info("%s: measured again; it was not, because %s", self._cluster_id, fault.description)
        return frozenset(self._seen_ns)
