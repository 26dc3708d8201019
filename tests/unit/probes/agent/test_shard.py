import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.fleet import Cluster
from fleetgauge_probes.agent.shard import Shard

IDS = st.lists(st.from_regex(r"[a-z0-9.-]{1,20}", fullmatch=True), unique=True, max_size=50)


def clusters(ids: list[str]) -> tuple[Cluster, ...]:
    return tuple(Cluster(id=one, bootstrap="kafka:9092") for one in ids)


@given(IDS, st.integers(1, 7))
def test_every_cluster_is_in_one_part_whatever_others_there_are(ids: list[str], of: int) -> None:
    shards = [Shard(number, of) for number in range(1, of + 1)]
    parts = [[one.id for one in shard.of_clusters(clusters(ids))] for shard in shards]
    assert sorted(one for part in parts for one in part) == sorted(ids)
    for shard, part in zip(shards, parts, strict=True):
        assert [one.id for one in shard.of_clusters(clusters(part))] == part


def test_a_fleet_is_shared_evenly() -> None:
    many = clusters([f"cluster-{number}" for number in range(1000)])
    sizes = [len(Shard(number, 4).of_clusters(many)) for number in (1, 2, 3, 4)]
    assert all(200 < size < 300 for size in sizes)


def test_a_shard_is_read_as_it_is_said_and_has_a_spool_of_its_own() -> None:
    assert Shard.parse("2/5") == Shard(2, 5)
    assert (Shard.parse("1/1").folder, Shard(2, 5).folder) == ("spool", "spool-2-of-5")


@pytest.mark.parametrize("text", ["", "2", "0/3", "4/3", "a/b", "1/0", "-1/2", "1/2/3"])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no shard: give one of so many, as 2/5"):
        Shard.parse(text)
