from fleetgauge_core.fleet import Fleet
from fleetgauge_probes.connection import grants

FLEET = Fleet.model_validate(
    {
        "clusters": [
            {"id": "orders", "bootstrap": "orders:9092"},
            {"id": "payments", "bootstrap": "payments:9092"},
        ],
        "telemetry": {"bootstrap": "telemetry:9092"},
    }
)


def test_a_measured_cluster_gives_rights_on_the_probe_topic_and_on_itself() -> None:
    on_topic, on_cluster = (one.command("User:agent") for one in grants(FLEET) if one.cluster == "orders")
    assert on_topic == (
        "kafka-acls.sh --bootstrap-server orders:9092 --add --allow-principal User:agent "
        "--operation Create --operation Describe --operation Write --operation Read --operation Alter "
        "--operation DescribeConfigs --operation AlterConfigs --topic fleetgauge.probe"
    )
    assert on_cluster == (
        "kafka-acls.sh --bootstrap-server orders:9092 --add --allow-principal User:agent "
        "--operation Describe --operation Alter --cluster"
    )


def test_the_telemetry_cluster_gives_rights_on_its_topics_alone() -> None:
    given = [(one.topic, one.operations) for one in grants(FLEET) if one.cluster == "telemetry"]
    topics = ("fleetgauge.probe-minutes", "fleetgauge.probe-pulse", "fleetgauge.health-events")
    assert given == [
        *((topic, ("CREATE", "DESCRIBE", "WRITE")) for topic in topics),
        ("fleetgauge.demotions", ("DESCRIBE", "READ")),
    ]


def test_every_cluster_is_named_and_a_fleet_without_telemetry_has_no_other() -> None:
    assert {one.cluster for one in grants(FLEET)} == {"orders", "payments", "telemetry"}
    alone = FLEET.model_copy(update={"telemetry": None})
    assert {one.cluster for one in grants(alone)} == {"orders", "payments"}


def test_where_a_listener_asks_who_we_are_the_command_shows_it() -> None:
    measured = {"id": "orders", "bootstrap": "orders:9093", "security": {"tls": {}}}
    for grant in grants(Fleet.model_validate({"clusters": [measured]})):
        assert grant.secured
        said = "kafka-acls.sh --bootstrap-server orders:9093 --command-config admin.properties --add "
        assert grant.command("User:agent").startswith(said)
