import pytest

from fleetgauge_core.kafka import ClusterAuthorization, QueryFailure, RequestRejection
from fleetgauge_probes.connection.check import ConnectionCheck
from fleetgauge_probes.connection.permissions import (
    PROBING,
    TELEMETRY,
    check_permissions,
    format_operation,
)
from tests.unit.probes.connection.topic_inspections import (
    ALL_OPERATIONS,
    UNAUTHORIZED,
    absent_topic,
    existing_topic,
    hidden_topic,
)

SECURED = ClusterAuthorization(has_authorizer=True, cluster_operations=frozenset({"ALTER", "DESCRIBE"}))


def test_a_cluster_without_an_authorizer_allows_everything() -> None:
    unsecured = ClusterAuthorization(has_authorizer=False, cluster_operations=None)
    check = check_permissions(PROBING, unsecured, QueryFailure("late"))
    assert (check.ok, check.found) == (True, "no authorizer: every client may do everything")


def test_granted_permissions_are_listed() -> None:
    check = check_permissions(PROBING, SECURED, [absent_topic()])
    assert (check.ok, check.mend) == (True, None)
    assert check.found == (
        "authorized to list partition reassignments, elect leaders and reassign partitions, create, "
        "describe, write, read, add partitions, read settings, change settings"
    )


def test_an_existing_topic_needs_no_create_permission() -> None:
    assert check_permissions(PROBING, SECURED, [existing_topic(ALL_OPERATIONS - {"CREATE"})]).ok


@pytest.mark.parametrize(
    ("option", "name"),
    [
        ("Write", "write"),
        ("Read", "read"),
        ("Describe", "describe"),
        ("Alter", "add partitions"),
        ("DescribeConfigs", "read settings"),
        ("AlterConfigs", "change settings"),
    ],
)
def test_a_missing_permission_fails_with_the_command_that_grants_it(option: str, name: str) -> None:
    missing = next(operation for operation in ALL_OPERATIONS if format_operation(operation) == option)
    check = check_permissions(PROBING, SECURED, [existing_topic(ALL_OPERATIONS - {missing})])
    assert (check.ok, check.found) == (False, f"not authorized to {name} (fleetgauge.probe)")
    assert (check.mend or "").endswith(f"--operation {option} --topic fleetgauge.probe")


def test_the_dry_run_of_a_creation_shows_whether_it_is_authorized() -> None:
    check = check_permissions(PROBING, SECURED, [absent_topic(rejection=UNAUTHORIZED)])
    assert (check.ok, check.found) == (False, "not authorized to create (fleetgauge.probe)")
    by_policy = RequestRejection("POLICY_VIOLATION", "three replicas")
    assert check_permissions(PROBING, SECURED, [absent_topic(rejection=by_policy)]).ok


def test_only_probing_needs_the_cluster_permission_to_elect_leaders() -> None:
    without_alter = ClusterAuthorization(has_authorizer=True, cluster_operations=frozenset({"DESCRIBE"}))
    check = check_permissions(PROBING, without_alter, [existing_topic()])
    assert check.ok is False
    assert check.found == "not authorized to elect leaders and reassign partitions (cluster)"
    assert (check.mend or "").endswith("--operation Alter --cluster")
    assert check_permissions(TELEMETRY, without_alter, [existing_topic()]).ok


def test_unreported_permissions_are_unknown_and_not_a_failure() -> None:
    unreported = ClusterAuthorization(has_authorizer=None, cluster_operations=None)
    check = check_permissions(TELEMETRY, unreported, [existing_topic(operations=None)])
    assert check.ok is None
    assert check.found == ("unknown: the cluster does not report whether it allows to describe, write, read")


def test_a_missing_permission_fails_even_if_another_is_unreported() -> None:
    unreported = ClusterAuthorization(has_authorizer=True, cluster_operations=None)
    check = check_permissions(PROBING, unreported, [existing_topic(ALL_OPERATIONS - {"READ"})])
    assert check.ok is False


def test_a_hidden_topic_has_no_permissions() -> None:
    check = check_permissions(TELEMETRY, SECURED, [hidden_topic()])
    assert (check.ok, check.found.count("fleetgauge.probe")) == (False, 3)


@pytest.mark.parametrize(
    "check",
    [
        check_permissions(PROBING, QueryFailure("late"), []),
        check_permissions(PROBING, SECURED, QueryFailure("late")),
    ],
)
def test_without_a_response_permissions_are_unknown(check: ConnectionCheck) -> None:
    assert (check.ok, check.found) == (None, "unknown: late")
