from datetime import UTC, datetime, timedelta

import pytest
from pydantic import ValidationError

from fleetgauge_core.fleet import (
    Cluster,
    Fleet,
    Objective,
    Topics,
    Week,
)

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def _fleet(**values: object) -> Fleet:
    return Fleet.model_validate({"clusters": [{"id": "orders", "bootstrap": "orders:9092"}]} | values)


def _cluster(**values: object) -> Cluster:
    return Cluster.model_validate({"id": "a", "bootstrap": "a:1"} | values)


def test_only_clusters_are_required_and_all_other_keys_have_defaults() -> None:
    fleet = _fleet()
    assert (fleet.lake, fleet.telemetry, fleet.vantage, fleet.notifiers) == ("./lake", None, "default", ())
    assert (fleet.name, fleet.simulated) == ("fleet", False)
    assert fleet.week == Week(zone="UTC", start="monday")
    assert fleet.agent_late_ms == 100
    cluster = fleet.clusters[0]
    assert (cluster.tier, cluster.labels, cluster.retired) == ("single-zone", {}, ())
    assert (cluster.cloud, cluster.region, cluster.since, cluster.until) == (None,) * 4


def test_the_topics_have_their_documented_names_and_settings() -> None:
    topics = Topics()
    records = (topics.probe_minutes, topics.probe_pulse, topics.health_events)
    assert {topic.name: (topic.partitions, topic.retention_hours) for topic in records} == {
        "fleetgauge.probe-minutes": (12, 7 * 24),
        "fleetgauge.probe-pulse": (3, 24),
        "fleetgauge.health-events": (1, 30 * 24),
    }
    assert topics.watch_state.name == "fleetgauge.watch-state"


@pytest.mark.parametrize(("tier", "availability"), [("single-zone", 0.9995), ("multi-zone", 0.9999)])
def test_both_tiers_have_built_in_objectives(tier: str, availability: float) -> None:
    fleet = _fleet(clusters=[{"id": "a", "bootstrap": "a:1", "tier": tier}])
    assert fleet.objective(fleet.clusters[0]) == Objective(latency_p99_ms=100, availability=availability)


def test_objectives_add_to_or_replace_the_built_in_objectives() -> None:
    objective = {"latency_p99_ms": 7, "availability": 0.95}
    fleet = _fleet(objectives={"gold": objective, "multi-zone": objective})
    assert fleet.objective_by_tier.keys() == {"single-zone", "multi-zone", "gold"}
    assert fleet.objective_by_tier["multi-zone"].latency_p99_ms == 7


def test_a_tier_without_an_objective_is_rejected_with_the_valid_tiers() -> None:
    with pytest.raises(ValidationError, match=r"orders: tier 'gold' .*: multi-zone, single-zone"):
        _fleet(clusters=[{"id": "orders", "bootstrap": "a:1", "tier": "gold"}])


def test_an_objective_too_low_for_a_burn_alert_is_rejected_with_the_minimum() -> None:
    low = {"objectives": {"batch": {"latency_p99_ms": 500, "availability": 0.92}}}
    with pytest.raises(
        ValidationError, match=r"batch: .* 0\.92 .* 13\.44 .* page window 1h/5m; .* at least 0\.9256"
    ):
        _fleet(**low)


def test_the_minimum_objective_depends_on_the_budget_period() -> None:
    tier = {"objectives": {"batch": {"latency_p99_ms": 500, "availability": 0.93}}}
    assert _fleet(**tier).burn_alerts.windows[0].factor == 13.44
    with pytest.raises(ValidationError, match=r"14\.4 .* at least 0\.9306"):
        _fleet(**tier, burn_alerts={"period_days": 30})
    with pytest.raises(ValidationError, match="7 or 30"):
        _fleet(burn_alerts={"period_days": 28})


def test_a_duplicate_id_is_rejected() -> None:
    with pytest.raises(ValidationError, match=r"clusters: id 'a' is given twice"):
        _fleet(clusters=[{"id": "a", "bootstrap": "a:1"}, {"id": "a", "bootstrap": "a:2"}])


def test_a_cluster_belongs_to_the_segments_of_its_attributes_and_labels() -> None:
    assert _cluster().segments == {("fleet", ""), ("tier", "single-zone")}
    labelled = _cluster(cloud="aws", region="eu-west-1", labels={"team": "checkout", "cloud": "own"})
    assert labelled.segments == {
        ("fleet", ""),
        ("cloud", "aws"),
        ("cloud", "own"),
        ("region", "eu-west-1"),
        ("tier", "single-zone"),
        ("team", "checkout"),
    }


def test_until_must_be_later_than_since() -> None:
    with pytest.raises(ValidationError, match="until must be later than since"):
        _cluster(since=NOON, until=NOON)


def test_a_cluster_is_in_scope_from_since_until_before_until() -> None:
    cluster = _cluster(since=NOON, until=NOON + timedelta(minutes=2))
    minutes = [NOON + timedelta(minutes=n) for n in range(-1, 4)]
    assert [cluster.is_in_scope_at(minute) for minute in minutes] == [False, True, True, False, False]


def test_a_cluster_without_bounds_is_always_in_scope() -> None:
    assert _cluster().is_in_scope_at(NOON)


@pytest.mark.parametrize("name", ["", "x" * 65])
def test_a_name_has_one_to_64_characters(name: str) -> None:
    with pytest.raises(ValidationError, match="name"):
        _fleet(name=name)
    assert _fleet(name="x" * 64).name == "x" * 64


def test_a_fleet_is_immutable() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        _fleet().lake = "elsewhere"


def test_mitigation_advises_by_default_and_accepts_an_unquoted_off() -> None:
    assert set(_cluster().mitigation.model_dump().values()) == {"advise"}
    mitigation = _cluster(mitigation={"demote": "act", "restart": False}).mitigation
    assert (mitigation.demote, mitigation.restart) == ("act", "off")
    for invalid in ({"evacuate": "act"}, {"demote": True}, {"demote": "maybe"}):
        with pytest.raises(ValidationError):
            _cluster(mitigation=invalid)
