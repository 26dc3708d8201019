import pytest

from fleetgauge_core.kafka import Refusal, TopicSight, Unknown
from fleetgauge_probes.connection.topics import topics
from tests.unit.probes.connection.sights import DENIED, SETTINGS, SPEC, absent, hidden, present


def test_a_topic_that_is_not_there_yet_is_well() -> None:
    check = topics([absent()])
    assert (check.ok, check.found) == (True, "not there yet, the agent makes it: fleetgauge.probe")


def test_a_topic_like_ours_is_well() -> None:
    check = topics([present()])
    assert (check.ok, check.found) == (True, "there and as we make it: fleetgauge.probe")


def test_a_setting_that_matters_is_a_finding_with_the_command_that_mends_it() -> None:
    check = topics([present(settings=SETTINGS | {"cleanup.policy": "compact"})])
    assert check.ok is False
    assert "cleanup.policy=compact instead of delete" in check.found
    assert (
        check.mend == "kafka-configs.sh --alter --topic fleetgauge.probe --add-config cleanup.policy=delete"
    )


@pytest.mark.parametrize("settings", [{}, SETTINGS | {"segment.ms": "1"}])
def test_settings_that_do_not_matter_or_cannot_be_read_are_no_finding(settings: dict[str, str]) -> None:
    assert topics([present(settings=settings)]).ok


def test_too_few_replicas_are_a_finding() -> None:
    check = topics([present(replicas=1)])
    assert check.ok is False
    assert "replication factor 1 instead of 3" in check.found


def test_a_topic_that_a_policy_forbids_is_a_finding_in_the_brokers_words() -> None:
    check = topics([absent(refusal=Refusal("POLICY_VIOLATION", "names begin with a team"))])
    assert check.ok is False
    assert "POLICY_VIOLATION: names begin with a team" in check.found


def test_a_topic_that_cannot_be_seen_for_another_reason_is_a_finding() -> None:
    check = topics([TopicSight(SPEC, None, refusal=Refusal("INVALID_TOPIC_EXCEPTION", "its name"))])
    assert (check.ok, "cannot be seen" in check.found) == (False, True)


def test_missing_rights_are_another_checks_finding() -> None:
    assert topics([absent(refusal=DENIED), hidden()]).ok


def test_topics_in_the_same_state_are_told_together() -> None:
    assert topics([absent(), absent()]).found.count("not there yet") == 1


def test_without_an_answer_topics_are_not_known() -> None:
    assert topics(Unknown("late")).ok is None
