import pytest

from fleetgauge_core.kafka import Refusal, Rights, Unknown
from fleetgauge_probes.connection import Check
from fleetgauge_probes.connection.permissions import (
    PROBING,
    TELEMETRY,
    option_name,
    rights,
)
from tests.unit.probes.connection.sights import ALL, DENIED, absent, hidden, present

SECURED = Rights(secured=True, cluster=frozenset({"ALTER", "DESCRIBE"}))


def test_on_an_unsecured_cluster_everything_is_allowed_and_that_is_said() -> None:
    check = rights(PROBING, Rights(secured=False, cluster=None), Unknown("late"))
    assert (check.ok, check.found) == (True, "no authorizer: everybody may do everything")


def test_what_may_be_done_is_told() -> None:
    check = rights(PROBING, SECURED, [absent()])
    assert (check.ok, check.mend) == (True, None)
    assert check.found == (
        "may see replicas being moved, elect leaders and move replicas, create, describe, write, read, "
        "add partitions, read settings, change settings"
    )


def test_a_topic_that_is_there_need_not_be_created() -> None:
    assert rights(PROBING, SECURED, [present(ALL - {"CREATE"})]).ok


@pytest.mark.parametrize(
    ("option", "word"),
    [
        ("Write", "write"),
        ("Read", "read"),
        ("Describe", "describe"),
        ("Alter", "add partitions"),
        ("DescribeConfigs", "read settings"),
        ("AlterConfigs", "change settings"),
    ],
)
def test_a_missing_right_is_a_finding_with_the_command_that_grants_it(option: str, word: str) -> None:
    missing = next(one for one in ALL if option_name(one) == option)
    check = rights(PROBING, SECURED, [present(ALL - {missing})])
    assert (check.ok, check.found) == (False, f"may not {word} (fleetgauge.probe)")
    assert (check.mend or "").endswith(f"--operation {option} --topic fleetgauge.probe")


def test_the_dry_run_knows_whether_the_topic_may_be_created() -> None:
    check = rights(PROBING, SECURED, [absent(refusal=DENIED)])
    assert (check.ok, check.found) == (False, "may not create (fleetgauge.probe)")
    assert rights(PROBING, SECURED, [absent(refusal=Refusal("POLICY_VIOLATION", "three replicas"))]).ok


def test_electing_leaders_is_a_right_on_the_cluster_that_only_probing_uses() -> None:
    may_not = Rights(secured=True, cluster=frozenset({"DESCRIBE"}))
    check = rights(PROBING, may_not, [present()])
    assert (check.ok, check.found) == (False, "may not elect leaders and move replicas (cluster)")
    assert (check.mend or "").endswith("--operation Alter --cluster")
    assert rights(TELEMETRY, may_not, [present()]).ok


def test_what_the_broker_does_not_report_is_not_known_which_is_no_fault() -> None:
    check = rights(TELEMETRY, Rights(secured=None, cluster=None), [present(operations=None)])
    assert check.ok is None
    assert check.found == "not known: not reported, whether it may describe, write, read"


def test_a_missing_right_counts_even_where_another_is_not_reported() -> None:
    assert rights(PROBING, Rights(True, None), [present(ALL - {"READ"})]).ok is False


def test_a_hidden_topic_may_not_be_used() -> None:
    check = rights(TELEMETRY, SECURED, [hidden()])
    assert (check.ok, check.found.count("fleetgauge.probe")) == (False, 3)


@pytest.mark.parametrize(
    "check", [rights(PROBING, Unknown("late"), []), rights(PROBING, SECURED, Unknown("late"))]
)
def test_without_an_answer_rights_are_not_known(check: Check) -> None:
    assert (check.ok, check.found) == (None, "not known: late")
