from collections.abc import Sequence

import pytest
from pydantic import ValidationError

from fleetgauge_core.fleet import Fleet, Mirror

CLUSTERS = [{"id": one, "bootstrap": f"{one}:9092"} for one in ("north", "south", "north-all", "south-all")]


def fleet(mirrors: list[dict[str, str]], groups: Sequence[dict[str, str]] = ()) -> Fleet:
    return Fleet.model_validate({"clusters": CLUSTERS, "recovery": {"mirrors": mirrors, "groups": groups}})


def mirror(source: str, destination: str, **more: str) -> dict[str, str]:
    return {"source": source, "destination": destination, **more}


def test_without_mirrors_there_is_nothing_to_recover() -> None:
    assert Fleet.model_validate({"clusters": CLUSTERS}).recovery.mirrors == ()


@pytest.mark.parametrize(
    ("mirrors", "groups", "words"),
    [
        ([mirror("north", "west")], [], "no cluster 'west' (known: north, south, north-all, south-all)"),
        ([mirror("north", "north")], [], "north to north is given twice, or to itself"),
        ([mirror("north", "south")] * 2, [], "north to south is given twice, or to itself"),
        ([mirror("north", "south", topics="orders(")], [], "'orders(' is no regular expression: missing )"),
        (
            [mirror("north", "north-all")],
            [{"groups": ".*", "active": "north-all", "passive": "south-all"}],
            "north-all is not copied to south-all, nor are both copies of the same clusters",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_words(
    mirrors: list[dict[str, str]], groups: list[dict[str, str]], words: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        fleet(mirrors, groups)
    assert words in str(caught.value)


def test_groups_go_on_in_a_copy_or_in_another_copy_of_the_same_clusters() -> None:
    direct = fleet([mirror("north", "south")], [{"groups": "billing", "active": "north", "passive": "south"}])
    assert direct.recovery.between("north", "south") == direct.recovery.mirrors[0]
    both = [mirror("north", "north-all"), mirror("north", "south-all"), mirror("south", "south-all")]
    merged = fleet(both, [{"groups": ".*", "active": "north-all", "passive": "south-all"}])
    assert merged.recovery.in_common("north-all", "south-all") == {"north"}


def test_offset_syncs_are_told_under_the_other_ends_alias() -> None:
    at_source = Mirror(source="north", destination="south", destination_alias="backup")
    assert (at_source.syncs_topic, at_source.syncs_cluster) == ("mm2-offset-syncs.backup.internal", "north")
    there = Mirror(source="north", destination="south", syncs_at="destination")
    assert (there.syncs_topic, there.syncs_cluster) == ("mm2-offset-syncs.north.internal", "south")


def test_topics_of_kafka_and_of_mirror_maker_are_never_copied() -> None:
    any_topic = Mirror(source="north", destination="south")
    own = ["__consumer_offsets", "heartbeats", "north.heartbeats", "mm2-offset-syncs.a.internal", "x.replica"]
    assert not any(map(any_topic.takes, own))
    assert any_topic.takes("orders")
