import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetgauge_core.fleet import Cluster
from fleetgauge_core.runtime.shard import Shard

IDS = st.lists(st.from_regex(r"[a-z0-9.-]{1,20}", fullmatch=True), unique=True, max_size=50)


def clusters(ids: list[str]) -> tuple[Cluster, ...]:
    return tuple(Cluster(id=cluster_id, bootstrap="kafka:9092") for cluster_id in ids)


@given(IDS, st.integers(1, 7))
def test_every_cluster_is_in_exactly_one_shard_independent_of_other_clusters(
    ids: list[str], count: int
) -> None:
    shards = [Shard(number, count) for number in range(1, count + 1)]
    parts = [[cluster.id for cluster in shard.select_clusters(clusters(ids))] for shard in shards]
    assert sorted(cluster_id for part in parts for cluster_id in part) == sorted(ids)
    for shard, part in zip(shards, parts, strict=True):
        assert [cluster.id for cluster in shard.select_clusters(clusters(part))] == part


def test_shards_have_about_the_same_size() -> None:
    fleet = clusters([f"cluster-{number}" for number in range(1000)])
    sizes = [len(Shard(number, 4).select_clusters(fleet)) for number in (1, 2, 3, 4)]
    assert all(200 < size < 300 for size in sizes)


def test_a_shard_is_parsed_and_tells_its_names_from_those_of_others() -> None:
    assert Shard.parse("2/5") == Shard(2, 5)
    assert (Shard.parse("1/1").suffix, Shard(2, 5).suffix) == ("", "-2-of-5")


@pytest.mark.parametrize("text", ["", "2", "0/3", "4/3", "a/b", "1/0", "-1/2", "1/2/3"])
def test_an_invalid_shard_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="is not a shard: give its number and the number of shards, as 2/5"):
        Shard.parse(text)
