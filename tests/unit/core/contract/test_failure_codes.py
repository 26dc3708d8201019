"""Whose fault each failure code is; a code of a newer client library has to be judged before it is used."""

import re
from pathlib import Path

import pytest
from confluent_kafka import KafkaError

from fleetgauge_core.contract.failure_codes import (
    AGENT_CODES,
    CLUSTER_CODES,
    AgentFault,
    find_agent_fault,
    split_failures,
)
from fleetgauge_core.kafka import AUTHENTICATION_FAILED, ConnectionFailure
from fleetgauge_core.kafka.errors import NO_ANSWER, error_code

JUDGED = AGENT_CODES | CLUSTER_CODES


def client_library_codes() -> dict[str, str]:
    """Return the names of the client library's error constants, by the code that the agent stores."""
    constants = {name: getattr(KafkaError, name) for name in dir(KafkaError)}
    return {
        error_code(KafkaError(number)): name
        for name, number in constants.items()
        if name.strip("_").isupper() and isinstance(number, int)
    }


def test_every_code_of_the_client_library_is_judged_once() -> None:
    codes = client_library_codes()
    assert len(codes) > 150
    assert sorted(codes.keys() - JUDGED) == []
    assert not AGENT_CODES & CLUSTER_CODES


def test_every_code_that_the_agent_makes_itself_is_judged() -> None:
    own = {failure.value.upper() for failure in ConnectionFailure}
    own |= {AUTHENTICATION_FAILED.upper(), NO_ANSWER.upper(), "THROTTLED", "QUEUE_FULL"}
    own |= {"ACK_LATE", "NO_REPORT", "NOT_RECEIVED", "NOT_LEADING"}
    assert sorted(own - JUDGED) == []


def test_no_code_is_listed_that_nothing_can_report() -> None:
    own = {failure.value.upper() for failure in ConnectionFailure}
    reported = client_library_codes().keys() | own | {"THROTTLED", "CLOCK_STEPPED", "NO_ANSWER"}
    reported |= {"ACK_LATE", "NO_REPORT", "NOT_RECEIVED", "NOT_LEADING"}
    assert sorted(JUDGED - reported) == []


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("TOPIC_AUTHORIZATION_FAILED", AgentFault.RIGHTS),
        ("SASL_AUTHENTICATION_FAILED", AgentFault.CREDENTIALS),
        ("OUR_CERTIFICATE_REFUSED", AgentFault.CREDENTIALS),
        ("INVALID_RECORD", AgentFault.PROBE_TOPIC),
        ("UNKNOWN_TOPIC_OR_PART", AgentFault.PROBE_TOPIC),
        ("THROTTLED", AgentFault.QUOTA),
        ("QUEUE_FULL", AgentFault.HOST),
        ("OWN_RESOURCES", AgentFault.HOST),
        ("INVALID_TIMESTAMP", AgentFault.CLOCK),
        ("MSG_TIMED_OUT", None),
        ("NOT_LEADER_FOR_PARTITION", None),
        ("NOT_ENOUGH_REPLICAS", None),
        ("KAFKA_STORAGE_ERROR", None),
        ("CERTIFICATE_EXPIRED", None),
        ("A_CODE_OF_NEXT_YEAR", None),
    ],
)
def test_a_code_counts_against_the_agent_only_where_no_client_would_have_met_it(
    code: str, fault: AgentFault | None
) -> None:
    assert find_agent_fault(code) is fault


def test_every_fault_has_words_and_a_remedy() -> None:
    for fault in AgentFault:
        assert fault.description
        assert fault.remedy
        assert not fault.remedy.endswith(".")
    assert {fault for fault in AgentFault if not fault.needs_agreement} == {AgentFault.QUOTA, AgentFault.HOST}


@pytest.mark.parametrize(
    ("failures", "failed", "counted", "uncounted"),
    [
        ({"INVALID_RECORD": 100}, 0, {}, {"INVALID_RECORD": 100}),
        ({"INVALID_RECORD": 100}, 100, {"INVALID_RECORD": 100}, {}),
        ({"INVALID_RECORD": 60, "MSG_TIMED_OUT": 3}, 3, {"MSG_TIMED_OUT": 3}, {"INVALID_RECORD": 60}),
        (
            {"INVALID_RECORD": 60, "THROTTLED": 10},
            30,
            {"INVALID_RECORD": 20, "THROTTLED": 10},
            {"INVALID_RECORD": 40},
        ),
        ({"MSG_TIMED_OUT": 3}, 0, {"MSG_TIMED_OUT": 3}, {}),
        ({}, 0, {}, {}),
    ],
)
def test_failures_are_split_by_the_attempts_that_they_explain(
    failures: dict[str, int], failed: int, counted: dict[str, int], uncounted: dict[str, int]
) -> None:
    assert split_failures(failures, failed) == (counted, uncounted)


def test_the_table_of_the_documentation_has_every_code_of_the_agents_own() -> None:
    text = Path("docs/decisions/whose-fault.md").read_text(encoding="utf-8")
    documented = {
        code: AgentFault(fault)
        for fault, codes in re.findall(r"^\| `([a-z_]+)` \| (.+) \|$", text, re.MULTILINE)
        for code in re.findall(r"`(\w+)`", codes)
    }
    assert documented == {code: find_agent_fault(code) for code in AGENT_CODES}
