import pytest

from fleetgauge_core.kafka import QueryFailure, RequestRejection, TopicInspection
from fleetgauge_probes.connection.topics import check_topics
from tests.unit.probes.connection.topic_inspections import (
    SETTINGS,
    SPEC,
    UNAUTHORIZED,
    absent_topic,
    existing_topic,
    hidden_topic,
)


def test_an_absent_topic_passes_because_the_agent_creates_it() -> None:
    check = check_topics([absent_topic()])
    assert (check.ok, check.found) == (True, "does not exist yet, the agent creates it: fleetgauge.probe")


def test_a_topic_as_specified_passes() -> None:
    check = check_topics([existing_topic()])
    assert (check.ok, check.found) == (True, "exists as specified: fleetgauge.probe")


def test_a_different_relevant_setting_fails_with_the_command_that_corrects_it() -> None:
    check = check_topics([existing_topic(settings=SETTINGS | {"cleanup.policy": "compact"})])
    assert check.ok is False
    assert "cleanup.policy=compact instead of delete" in check.found
    assert (
        check.mend == "kafka-configs.sh --alter --topic fleetgauge.probe --add-config cleanup.policy=delete"
    )


@pytest.mark.parametrize("settings", [{}, SETTINGS | {"compression.type": "zstd"}])
def test_irrelevant_or_unreadable_settings_pass(settings: dict[str, str]) -> None:
    assert check_topics([existing_topic(settings=settings)]).ok


def test_too_few_replicas_fail() -> None:
    check = check_topics([existing_topic(replicas=1)])
    assert check.ok is False
    assert "replication factor 1 instead of 3" in check.found


def test_a_topic_rejected_by_a_policy_fails_with_the_message_of_the_broker() -> None:
    rejection = RequestRejection("POLICY_VIOLATION", "names begin with a team")
    check = check_topics([absent_topic(rejection=rejection)])
    assert check.ok is False
    assert "POLICY_VIOLATION: names begin with a team" in check.found


def test_a_topic_that_cannot_be_described_fails() -> None:
    rejection = RequestRejection("INVALID_TOPIC_EXCEPTION", "its name")
    check = check_topics([TopicInspection(SPEC, None, rejection=rejection)])
    assert (check.ok, "cannot be described" in check.found) == (False, True)


def test_missing_permissions_pass_because_another_check_reports_them() -> None:
    assert check_topics([absent_topic(rejection=UNAUTHORIZED), hidden_topic()]).ok


def test_topics_in_the_same_state_are_reported_together() -> None:
    assert check_topics([absent_topic(), absent_topic()]).found.count("does not exist yet") == 1


def test_without_a_response_topics_are_unknown() -> None:
    assert check_topics(QueryFailure("late")).ok is None
