from dataclasses import replace

import pytest

from fleetgauge_core.contract.failure_codes import AgentFault
from fleetgauge_core.kafka import ConnectionFailure
from fleetgauge_probes.agent.agent_faults import ProbeFailure
from fleetgauge_probes.agent.failure_code import TimeoutEvidence, explain_timeout

LOGIN_INVALID = TimeoutEvidence(is_login_refused=True, is_login_invalid=True)
TIMED_OUT = ProbeFailure("MSG_TIMED_OUT")


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        (TimeoutEvidence(), TIMED_OUT),
        (TimeoutEvidence(ConnectionFailure.NO_RESPONSE), TIMED_OUT),
        (TimeoutEvidence(ConnectionFailure.CERTIFICATE_EXPIRED), ProbeFailure("CERTIFICATE_EXPIRED")),
        (TimeoutEvidence(ConnectionFailure.TLS_NOT_SUPPORTED), ProbeFailure("NO_TLS")),
        (
            TimeoutEvidence(ConnectionFailure.CLIENT_CERTIFICATE_REJECTED),
            ProbeFailure("OUR_CERTIFICATE_REFUSED"),
        ),
        (
            TimeoutEvidence(ConnectionFailure.CLIENT_CERTIFICATE_REJECTED, AgentFault.CREDENTIALS),
            ProbeFailure("OUR_CERTIFICATE_REFUSED", AgentFault.CREDENTIALS),
        ),
        (
            TimeoutEvidence(ConnectionFailure.OWN_RESOURCES, AgentFault.HOST),
            ProbeFailure("OWN_RESOURCES", AgentFault.HOST),
        ),
        (
            TimeoutEvidence(ConnectionFailure.CERTIFICATE_EXPIRED, AgentFault.CLOCK),
            ProbeFailure("CLOCK_STEPPED", AgentFault.CLOCK),
        ),
        (LOGIN_INVALID, ProbeFailure("AUTHENTICATION", AgentFault.CREDENTIALS)),
        (TimeoutEvidence(is_login_refused=True), ProbeFailure("AUTHENTICATION")),
    ],
)
def test_a_time_out_is_explained_by_what_is_known_of_the_broker(
    evidence: TimeoutEvidence, expected: ProbeFailure
) -> None:
    assert explain_timeout("MSG_TIMED_OUT", evidence) == expected


@pytest.mark.parametrize(
    "failure", [failure for failure in ConnectionFailure if not failure.is_security_failure]
)
def test_nothing_excuses_a_broker_whose_cold_connections_fail(
    failure: ConnectionFailure,
) -> None:
    assert explain_timeout("MSG_TIMED_OUT", replace(LOGIN_INVALID, connection_failure=failure)) == TIMED_OUT
