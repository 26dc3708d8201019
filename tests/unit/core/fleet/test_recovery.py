from collections.abc import Sequence

import pytest
from pydantic import ValidationError

from fleetgauge_core.fleet import Fleet, Mirror

IDS = ("north", "south", "north-all", "south-all")
CLUSTERS = [{"id": cluster_id, "bootstrap": f"{cluster_id}:9092"} for cluster_id in IDS]


def fleet(mirrors: list[dict[str, str]], groups: Sequence[dict[str, str]] = ()) -> Fleet:
    return Fleet.model_validate({"clusters": CLUSTERS, "recovery": {"mirrors": mirrors, "groups": groups}})


def mirror(source: str, destination: str, **settings: str) -> dict[str, str]:
    return {"source": source, "destination": destination, **settings}


def test_a_fleet_has_no_mirrors_by_default() -> None:
    assert Fleet.model_validate({"clusters": CLUSTERS}).recovery.mirrors == ()


@pytest.mark.parametrize(
    ("mirrors", "groups", "message"),
    [
        ([mirror("north", "west")], [], "unknown cluster 'west'; known: north, south, north-all, south-all"),
        ([mirror("north", "north")], [], "north cannot be mirrored to itself"),
        ([mirror("north", "south")] * 2, [], "north to south is given twice"),
        (
            [mirror("north", "south", topics="orders(")],
            [],
            "'orders(' is not a valid regular expression: missing )",
        ),
        (
            [mirror("north", "north-all")],
            [{"groups": ".*", "active": "north-all", "passive": "south-all"}],
            "no mirror from north-all to south-all, and they have no common source",
        ),
    ],
)
def test_an_invalid_recovery_is_rejected(
    mirrors: list[dict[str, str]], groups: list[dict[str, str]], message: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        fleet(mirrors, groups)
    assert message in str(caught.value)


def test_groups_fail_over_to_a_mirror_or_to_a_mirror_of_the_same_sources() -> None:
    direct = fleet([mirror("north", "south")], [{"groups": "billing", "active": "north", "passive": "south"}])
    assert direct.recovery.mirror_between("north", "south") == direct.recovery.mirrors[0]
    mirrors = [mirror("north", "north-all"), mirror("north", "south-all"), mirror("south", "south-all")]
    merged = fleet(mirrors, [{"groups": ".*", "active": "north-all", "passive": "south-all"}])
    assert merged.recovery.common_sources("north-all", "south-all") == {"north"}


def test_the_offset_syncs_topic_contains_the_alias_of_the_other_cluster() -> None:
    at_source = Mirror(source="north", destination="south", destination_alias="backup")
    assert (at_source.syncs_topic, at_source.syncs_cluster) == ("mm2-offset-syncs.backup.internal", "north")
    at_destination = Mirror(source="north", destination="south", syncs_at="destination")
    assert (at_destination.syncs_topic, at_destination.syncs_cluster) == (
        "mm2-offset-syncs.north.internal",
        "south",
    )


def test_internal_topics_are_never_replicated() -> None:
    mirror_of_all = Mirror(source="north", destination="south")
    internal = [
        "__consumer_offsets",
        "heartbeats",
        "north.heartbeats",
        "mm2-offset-syncs.a.internal",
        "x.replica",
    ]
    assert not any(map(mirror_of_all.replicates, internal))
    assert mirror_of_all.replicates("orders")
