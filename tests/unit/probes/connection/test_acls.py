from fleetgauge_core.fleet import Fleet
from fleetgauge_probes.connection.acls import list_grants

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
