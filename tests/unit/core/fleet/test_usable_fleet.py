"""What is usable of a fleet file with bad entries, and what stays of the previous fleet."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleetgauge_core.fleet import Fleet, FleetFileError, load_fleet
from fleetgauge_core.fleet.usable_fleet import (
    UsableFleet,
    keep_previous_entries,
    list_messages,
    load_usable_fleet,
)

Document = dict[str, Any]
GOOD: Sequence[Document] = [
    {"id": name, "bootstrap": f"{name}:9092"} for name in ("orders", "carts", "search")
]
#: Bad values, and what the message says of them.
BAD_VALUES: Sequence[tuple[Document, str]] = [
    ({"bootstrap": "orders:99999"}, "clusters.1.bootstrap: "),
    ({"bootstrap": None}, "clusters.1.bootstrap: "),
    (
        {"security": {"sasl": {"mechanism": "PLAIN", "username": "u", "password": "hunter2"}}},
        "sasl.password: give",
    ),
    ({"security": {"tls": {"certificate": "a.pem"}}}, "give certificate and key together"),
    ({"security": {"tls": {"ca": "a\0b.pem"}}}, "tls.ca: a path has no NUL character"),
    ({"tier": "platinum"}, "tier 'platinum' has no objective"),
    ({"since": "2026-01-02T00:00:00Z", "until": "2026-01-01T00:00:00Z"}, "until must be later than since"),
    ({"retired": [-1]}, "clusters.1.retired.0: "),
    ({"unknown": 1}, "clusters.1.unknown: "),
    ({"mitigation": {"demote": "always"}}, "clusters.1.mitigation.demote: "),
]
WEBHOOK = {"kind": "webhook", "url": "http://hook"}


def _write(folder: Path, document: Document) -> Path:
    path = folder / "fleet.yaml"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def _load(folder: Path, document: Document, *, connects: bool = True) -> UsableFleet:
    return load_usable_fleet(_write(folder, document), connects=connects)


def _ids(fleet: Fleet) -> list[str]:
    return [cluster.id for cluster in fleet.clusters]


@pytest.mark.parametrize(("value", "message"), BAD_VALUES)
def test_a_bad_value_of_one_cluster_leaves_all_others(tmp_path: Path, value: Document, message: str) -> None:
    loaded = _load(tmp_path, {"clusters": [GOOD[0], GOOD[1] | value, GOOD[2]], "notifiers": [WEBHOOK]})
    assert _ids(loaded.fleet) == ["orders", "search"]
    assert len(loaded.fleet.notifiers) == 1
    (problem,) = loaded.problems
    assert (problem.part, problem.name, problem.cluster_id) == ("cluster", "carts", "carts")
    assert message in problem.message
    assert "hunter2" not in problem.message
    with pytest.raises(FleetFileError):
        load_fleet(tmp_path / "fleet.yaml")


@pytest.mark.parametrize(
    "entry",
    [{"bootstrap": "b:1"}, {"id": 3, "bootstrap": "b:1"}, {"id": "a b", "bootstrap": "b:1"}, "carts", None],
)
def test_a_cluster_without_a_valid_id_is_named_by_its_position(tmp_path: Path, entry: object) -> None:
    loaded = _load(tmp_path, {"clusters": [GOOD[0], entry]})
    assert _ids(loaded.fleet) == ["orders"]
    assert [(problem.name, problem.cluster_id) for problem in loaded.problems] == [("clusters.1", None)]
    assert loaded.has_unknown_cluster


def test_the_first_of_two_entries_with_one_id_counts(tmp_path: Path) -> None:
    copies = [GOOD[0] | {"region": str(number)} for number in range(3)]
    loaded = _load(tmp_path, {"clusters": [copies[0], GOOD[1], *copies[1:]]})
    assert _ids(loaded.fleet) == ["orders", "carts"]
    assert loaded.fleet.clusters[0].region == "0"
    assert loaded.unusable_ids == {"orders"}
    messages = list_messages(loaded.problems, "cluster", "correct it")
    assert messages == {
        "orders": "clusters: id 'orders' is given twice; clusters: id 'orders' is given twice; correct it"
    }


@pytest.mark.parametrize(
    "notifier", [{"kind": "webhook"}, {"kind": "smoke"}, {"kind": "slack", "url": "hooks.example"}, "webhook"]
)
def test_a_bad_notifier_leaves_all_others(tmp_path: Path, notifier: object) -> None:
    loaded = _load(tmp_path, {"clusters": [GOOD[0]], "notifiers": [notifier, WEBHOOK]})
    assert [each.kind for each in loaded.fleet.notifiers] == ["webhook"]
    assert [(problem.part, problem.name) for problem in loaded.problems] == [("notifier", "notifiers.0")]


def test_the_first_of_two_notifiers_with_one_name_counts(tmp_path: Path) -> None:
    named = [WEBHOOK | {"name": "oncall", "url": f"http://{number}"} for number in range(2)]
    loaded = _load(tmp_path, {"clusters": [GOOD[0]], "notifiers": [WEBHOOK, *named]})
    assert [each.url for each in loaded.fleet.notifiers] == ["http://hook", "http://0"]
    assert [problem.message for problem in loaded.problems] == ["notifiers: name 'oncall' is given twice"]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"clusters": [GOOD[0] | {"bootstrap": "a:0"}]}, "clusters.0.bootstrap: "),
        ({"clusters": [GOOD[0], GOOD[1] | {"tier": 3}], "week": {"zone": "Nowhere"}}, "week.zone: "),
        ({"clusters": {"id": "orders"}}, "clusters: "),
        ({"clusters": [GOOD[0]], "notifiers": 3}, "notifiers: "),
        ({"clusters": [GOOD[0], "carts"], "recovery": {"mirrors": [{"source": 1}]}}, "recovery.mirrors.0"),
        ({}, "clusters: Field required"),
    ],
)
def test_an_error_of_the_whole_file_is_an_error(tmp_path: Path, document: Document, message: str) -> None:
    with pytest.raises(FleetFileError, match=message.replace(".", r"\.")):
        _load(tmp_path, document)


def test_a_process_that_connects_to_no_cluster_needs_no_connection(tmp_path: Path) -> None:
    for value, _ in BAD_VALUES:
        loaded = _load(tmp_path, {"clusters": [GOOD[0], GOOD[1] | value]}, connects=False)
        is_usable = value.keys() <= {"bootstrap", "security", "mitigation"}
        if is_usable:
            assert _ids(_load(tmp_path, {"clusters": [GOOD[1] | value]}, connects=False).fleet) == ["carts"]
        assert _ids(loaded.fleet) == (["orders", "carts"] if is_usable else ["orders"])
        assert bool(loaded.problems) != is_usable


def test_recovery_goes_on_without_a_cluster_that_cannot_be_used(tmp_path: Path) -> None:
    recovery = {
        "mirrors": [
            {"source": "orders", "destination": "carts"},
            {"source": "orders", "destination": "search"},
            {"source": "carts", "destination": "search"},
        ],
        "groups": [
            {"groups": "a", "active": "orders", "passive": "search"},
            {"groups": "b", "active": "orders", "passive": "carts"},
        ],
        "capacities": [{"cluster": "carts", "records_per_s": 1}, {"cluster": "search", "records_per_s": 1}],
        "primaries": {"topic": "primaries", "cluster": "carts"},
    }
    bad = GOOD[1] | {"bootstrap": "carts:0"}
    kept = _load(tmp_path, {"clusters": [GOOD[0], bad, GOOD[2]], "recovery": recovery}).fleet.recovery
    assert [(mirror.source, mirror.destination) for mirror in kept.mirrors] == [("orders", "search")]
    assert [groups.groups for groups in kept.groups] == ["a"]
    assert [capacity.cluster for capacity in kept.capacities] == ["search"]
    assert kept.primaries is None
    with pytest.raises(FleetFileError, match="unknown cluster 'carts'"):
        _load(tmp_path, {"clusters": [GOOD[0], GOOD[2]], "recovery": recovery})


_ENTRY = st.one_of(
    st.sampled_from(GOOD),
    st.sampled_from([{"id": "orders", "bootstrap": "x:0"}, {"id": "x"}, {"bootstrap": "b:1"}, 3, None, {}]),
)


@given(
    entries=st.lists(_ENTRY, min_size=1, max_size=6), notifiers=st.lists(st.sampled_from([WEBHOOK, {}, 1]))
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_every_entry_is_used_or_has_a_problem(
    tmp_path: Path, entries: list[Any], notifiers: list[Any]
) -> None:
    try:
        loaded = _load(tmp_path, {"clusters": entries, "notifiers": notifiers})
    except FleetFileError:
        assert not any(entry in GOOD for entry in entries)
        return
    used = len(loaded.fleet.clusters) + len(loaded.fleet.notifiers)
    assert used + len(loaded.problems) == len(entries) + len(notifiers)
    wanted = [entry["id"] for entry in entries if entry in GOOD]
    assert _ids(loaded.fleet) == list(dict.fromkeys(wanted))


def _fleet(*clusters: Document, **others: Any) -> Fleet:
    return Fleet.model_validate({"clusters": clusters, **others})


def test_a_cluster_stays_as_it_was_while_its_entry_is_bad(tmp_path: Path) -> None:
    previous = _fleet(
        GOOD[0],
        GOOD[1] | {"tier": "gold"},
        GOOD[2],
        objectives={"gold": {"availability": 0.999, "latency_p99_ms": 50}},
    )
    loaded = _load(tmp_path, {"clusters": [GOOD[0], GOOD[1] | {"tier": "gold"}]})
    kept = keep_previous_entries(previous, loaded)
    assert kept.clusters == previous.clusters[:2]
    assert kept.objective(kept.clusters[1]) == previous.objectives["gold"]


def test_no_cluster_counts_as_removed_while_an_entry_has_no_id(tmp_path: Path) -> None:
    previous = _fleet(*GOOD)
    loaded = _load(tmp_path, {"clusters": [GOOD[0], {"idd": "carts", "bootstrap": "carts:9092"}]})
    assert _ids(keep_previous_entries(previous, loaded)) == ["orders", "carts", "search"]
    assert _ids(keep_previous_entries(previous, _load(tmp_path, {"clusters": [GOOD[0]]}))) == ["orders"]


def test_a_cluster_that_is_given_twice_stays_as_it_was(tmp_path: Path) -> None:
    previous = _fleet(GOOD[0])
    copies = [GOOD[0] | {"bootstrap": "other:1"}, GOOD[0] | {"bootstrap": "another:1"}]
    loaded = _load(tmp_path, {"clusters": [*copies, GOOD[1]]})
    kept = keep_previous_entries(previous, loaded)
    assert [cluster.bootstrap for cluster in kept.clusters] == ["orders:9092", "carts:9092"]


def test_notifiers_stay_while_one_is_bad(tmp_path: Path) -> None:
    pager = {"kind": "webhook", "url": "http://pager"}
    previous = _fleet(GOOD[0], notifiers=[WEBHOOK, pager])
    loaded = _load(
        tmp_path, {"clusters": [GOOD[0]], "notifiers": [WEBHOOK | {"burn_in": True}, {"kind": "webhook"}]}
    )
    notifiers = keep_previous_entries(previous, loaded).notifiers
    assert [(each.url, each.burn_in) for each in notifiers] == [
        ("http://hook", True),
        ("http://pager", False),
    ]


def test_a_notifier_stays_that_differs_from_a_good_one_only_by_its_login(tmp_path: Path) -> None:
    teams = [WEBHOOK | {"name": team, "headers": {"X-Team": team}} for team in ("a", "b")]
    previous = _fleet(GOOD[0], notifiers=teams)
    loaded = _load(tmp_path, {"clusters": [GOOD[0]], "notifiers": [teams[0], teams[1] | {"header": {}}]})
    notifiers = keep_previous_entries(previous, loaded).notifiers
    assert [each.name for each in notifiers] == ["a", "b"]


SOURCE = {"name": "ci", "token": {"env": "CI_TOKEN"}}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"name": "x y", "token": {"env": "A"}}, "name"),
        ({"name": "late", "token": "secret"}, "never the secret itself"),
        ({"name": "late", "token": {"env": "A"}, "form": "jenkins"}, "form"),
        ({"name": "late", "token": {"env": "A"}, "segment": "eu"}, "NAME=VALUE"),
        ({"name": "late", "token": {"env": "A"}, "segment": "region=mars"}, "no cluster is in region=mars"),
        ({"name": "ci", "token": {"env": "A"}}, "name 'ci' is given twice"),
    ],
)
def test_a_bad_source_of_changes_leaves_all_others(
    tmp_path: Path, source: dict[str, Any], message: str
) -> None:
    loaded = _load(tmp_path, {"clusters": [GOOD[0]], "change_sources": [SOURCE, source]})
    assert [each.name for each in loaded.fleet.change_sources] == ["ci"]
    (problem,) = loaded.problems
    assert (problem.part, problem.name) == ("change_source", "change_sources.1")
    assert message in problem.message
    assert "secret'" not in problem.message


def test_a_source_of_changes_that_becomes_bad_stays_as_it_was(tmp_path: Path) -> None:
    previous = _load(tmp_path, {"clusters": [GOOD[0]], "change_sources": [SOURCE]}).fleet
    bad = _load(tmp_path, {"clusters": [GOOD[0]], "change_sources": [SOURCE | {"form": "jenkins"}]})
    assert keep_previous_entries(previous, bad).change_sources == previous.change_sources
    gone = _load(tmp_path, {"clusters": [GOOD[0]]})
    assert keep_previous_entries(previous, gone).change_sources == ()
