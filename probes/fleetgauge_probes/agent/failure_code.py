"""Classification of a probe that timed out, by what is known of its broker."""

from dataclasses import dataclass

from fleetgauge_core.contract.failure_codes import (
    AUTHENTICATION,
    CLOCK_STEPPED,
    AgentFault,
)
from fleetgauge_core.kafka import ConnectionFailure
from fleetgauge_probes.agent.agent_faults import ProbeFailure

#: The code that librdkafka reports for every probe whose broker it could not exchange requests with.
MSG_TIMED_OUT = "MSG_TIMED_OUT"


@dataclass(frozen=True, slots=True)
class TimeoutEvidence:
    """What explains a time-out of a broker's probe.

    ``connection_failure`` is the result of the last cold connection to the broker (None: it answered), and
    ``connection_fault`` the agent's own fault that caused it. ``is_login_refused``: whether the broker
    refuses the agent's login; ``is_login_invalid``: whether every broker that was asked does.
    """

    connection_failure: ConnectionFailure | None = None
    connection_fault: AgentFault | None = None
    is_login_refused: bool = False
    is_login_invalid: bool = False


def explain_timeout(code: str, evidence: TimeoutEvidence) -> ProbeFailure:
    """Return the code, or a more specific one if the evidence has it, and whether the agent is at fault.

    A broker whose cold connections fail for a reason of its own is not excused by anything else.
    """
    failure = evidence.connection_failure
    if failure and evidence.connection_fault:
        specific = CLOCK_STEPPED if evidence.connection_fault is AgentFault.CLOCK else failure.value.upper()
        return ProbeFailure(specific, evidence.connection_fault)
    if failure and failure.is_security_failure:
        return ProbeFailure(failure.value.upper())
    if failure:
        return ProbeFailure(code)
    if evidence.is_login_refused:
        return ProbeFailure(AUTHENTICATION, AgentFault.CREDENTIALS if evidence.is_login_invalid else None)
    return ProbeFailure(code)
