import shlex

import pytest

from fleetgauge_core.fleet import Fleet
from fleetgauge_probes.cli import acls
from fleetgauge_probes.connection.acls import ROLES, list_grants

FLEET = Fleet.model_validate(
    {
        "clusters": [
            {"id": "orders", "bootstrap": "orders:9092"},
            {"id": "payments", "bootstrap": "payments:9092"},
        ],
        "telemetry": {"bootstrap": "telemetry:9092"},
    }
)


def test_a_probed_cluster_grants_operations_on_the_probe_topic_and_the_cluster() -> None:
    on_topic, on_cluster = (
        grant.format_command("User:agent") for grant in list_grants(FLEET) if grant.cluster == "orders"
    )
    assert on_topic == (
        "kafka-acls.sh --bootstrap-server orders:9092 --add --allow-principal User:agent "
        "--operation Create --operation Describe --operation Write --operation Read --operation Alter "
        "--operation DescribeConfigs --operation AlterConfigs --topic fleetgauge.probe"
    )
    assert on_cluster == (
        "kafka-acls.sh --bootstrap-server orders:9092 --add --allow-principal User:agent "
        "--operation Describe --operation Alter --cluster"
    )


def test_the_telemetry_cluster_grants_operations_on_its_topics_only() -> None:
    grants = [(grant.topic, grant.operations) for grant in list_grants(FLEET) if grant.cluster == "telemetry"]
    topics = ("fleetgauge.probe-minutes", "fleetgauge.probe-pulse", "fleetgauge.health-events")
    assert grants == [
        *((topic, ("CREATE", "DESCRIBE", "WRITE")) for topic in topics),
        *((topic, ("DESCRIBE_CONFIGS", "ALTER_CONFIGS")) for topic in topics),
        ("fleetgauge.demotions", ("DESCRIBE", "READ")),
    ]


def test_grants_cover_every_cluster_and_the_telemetry_cluster_if_there_is_one() -> None:
    assert {grant.cluster for grant in list_grants(FLEET)} == {"orders", "payments", "telemetry"}
    without_telemetry = FLEET.model_copy(update={"telemetry": None})
    assert {grant.cluster for grant in list_grants(without_telemetry)} == {"orders", "payments"}


def test_the_command_for_a_secured_listener_has_a_credentials_file() -> None:
    cluster = {"id": "orders", "bootstrap": "orders:9093", "security": {"tls": {}}}
    for grant in list_grants(Fleet.model_validate({"clusters": [cluster]})):
        assert grant.secured
        start = "kafka-acls.sh --bootstrap-server orders:9093 --command-config admin.properties --add "
        assert grant.format_command("User:agent").startswith(start)


# Other processes ---------------------------------------------------------------------

REGIONS = Fleet.model_validate(
    {
        "clusters": [{"id": name, "bootstrap": f"{name}:9092"} for name in ("north", "south", "leases")],
        "telemetry": {"bootstrap": "telemetry:9092"},
        "recovery": {
            "mirrors": [{"source": "north", "destination": "south", "topics": "orders.*|tracers"}],
            "groups": [{"active": "north", "passive": "south", "groups": "billing"}],
            "tracers": {"topic": "tracers"},
            "primaries": {"topic": "primaries", "cluster": "leases"},
        },
    }
)


def rights_of(role: str, fleet: Fleet = REGIONS) -> set[tuple[str, str, tuple[str, ...]]]:
    """Return the cluster, the resource and the operations of each grant."""
    return {
        (grant.cluster, f"group {grant.group}" if grant.group else grant.topic or "cluster", grant.operations)
        for grant in list_grants(fleet, role)
    }


def test_the_option_offers_every_process() -> None:
    (option,) = (parameter for parameter in acls.params if parameter.name == "role")
    assert list(option.type.choices) == list(ROLES)  # type: ignore[attr-defined]


def test_the_watch_reads_records_and_writes_findings_and_its_state() -> None:
    assert rights_of("watch") == {
        ("telemetry", "fleetgauge.probe-minutes", ("CREATE", "READ")),
        ("telemetry", "fleetgauge.probe-pulse", ("CREATE", "READ")),
        ("telemetry", "fleetgauge.health-events", ("CREATE", "READ", "WRITE")),
        ("telemetry", "fleetgauge.watch-state", ("CREATE", "READ", "WRITE", "ALTER_CONFIGS")),
        ("telemetry", "group fleetgauge.watch-state", ("READ",)),
    }


def test_the_stream_writes_no_topic_and_joins_no_group() -> None:
    assert rights_of("stream") == {
        ("telemetry", "fleetgauge.probe-minutes", ("CREATE", "READ")),
        ("telemetry", "fleetgauge.probe-pulse", ("CREATE", "DESCRIBE")),
        ("telemetry", "fleetgauge.health-events", ("CREATE", "READ")),
        ("telemetry", "fleetgauge.changes", ("CREATE", "READ")),
    }


def test_a_mitigation_changes_every_cluster_and_leads_by_a_group_for_each() -> None:
    rights = rights_of("mitigate")
    for cluster in ("north", "south", "leases"):
        assert (cluster, "*", ("DESCRIBE", "ALTER_CONFIGS")) in rights
        assert (cluster, "cluster", ("ALTER", "ALTER_CONFIGS")) in rights
    assert ("telemetry", "group fleetgauge-mitigate", ("READ",)) in rights
    commands = [grant.format_command("User:m") for grant in list_grants(REGIONS, "mitigate")]
    assert any(
        command.endswith("--operation Read --resource-pattern-type prefixed --group fleetgauge-mitigate")
        for command in commands
    )
    assert all("*" not in word or word == "*" for command in commands for word in shlex.split(command))
    assert any(command.endswith("--topic '*'") for command in commands)


def test_a_recovery_needs_rights_only_where_it_has_something_to_do() -> None:
    assert rights_of("recover") == {
        ("north", "*", ("DESCRIBE_CONFIGS", "READ")),
        ("north", "tracers", ("CREATE", "WRITE")),
        ("north", "group *", ("DESCRIBE",)),
        ("south", "*", ("READ",)),
        ("south", "group *", ("READ",)),
        ("leases", "primaries", ("READ",)),
    }
    assert rights_of("recover", FLEET) == set()


@pytest.mark.parametrize("role", ["watch", "stream"])
def test_without_a_telemetry_cluster_a_process_of_it_needs_nothing(role: str) -> None:
    assert rights_of(role, FLEET.model_copy(update={"telemetry": None})) == set()
