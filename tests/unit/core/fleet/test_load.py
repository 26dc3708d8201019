import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleetgauge_core.fleet import Fleet, FleetFileError, load_fleet

DOCUMENT = {"clusters": [{"id": "orders", "bootstrap": "orders:9092"}]}
SECRET = "hunter2-token"


def _load(folder: Path, text: str, name: str = "fleet.yaml") -> Fleet:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return load_fleet(path)


def _error_message(folder: Path, text: str) -> str:
    with pytest.raises(FleetFileError) as caught:
        _load(folder, text)
    message = str(caught.value)
    assert message.startswith(f"{folder / 'fleet.yaml'}: ")
    assert "\n" not in message
    return message.removeprefix(f"{folder / 'fleet.yaml'}: ")


def test_yaml_and_json_describe_the_same_fleet(tmp_path: Path) -> None:
    document = DOCUMENT | {"lake": "s3a://bucket/lake", "week": {"zone": "Europe/Berlin", "start": "sunday"}}
    assert _load(tmp_path, yaml.safe_dump(document)) == _load(tmp_path, json.dumps(document, indent=1))
    assert _load(tmp_path, json.dumps(document), "fleet.json").week.start == "sunday"


@pytest.mark.parametrize("lake", ["./lake", "lake", "sub/../lake", None])
def test_a_relative_lake_is_relative_to_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lake: str | None
) -> None:
    folder = tmp_path / "config"
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    document = DOCUMENT | ({"lake": lake} if lake else {})
    assert _load(folder, json.dumps(document)).lake == str((folder / "lake").resolve())


def test_a_relative_path_of_the_file_gives_an_absolute_lake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fleet.yaml").write_text(json.dumps(DOCUMENT), encoding="utf-8")
    assert load_fleet(Path("fleet.yaml")).lake == str((tmp_path / "lake").resolve())


@pytest.mark.parametrize(
    "lake", ["s3a://bucket/lake", "abfss://c@a.example/lake", "gs://bucket", "/data/lake"]
)
def test_an_absolute_lake_is_not_changed(tmp_path: Path, lake: str) -> None:
    assert _load(tmp_path, json.dumps(DOCUMENT | {"lake": lake})).lake == lake


def test_an_unquoted_yaml_time_with_an_offset_is_read(tmp_path: Path) -> None:
    text = "clusters:\n- {id: a, bootstrap: 'a:1', since: 2026-01-01T02:00:00+02:00}\n"
    assert _load(tmp_path, text).clusters[0].since == datetime(2026, 1, 1, tzinfo=UTC)


def test_a_missing_file_is_reported_with_the_option_to_choose_another(tmp_path: Path) -> None:
    with pytest.raises(FleetFileError, match=r"absent\.yaml: .*--config"):
        load_fleet(tmp_path / "absent.yaml")


def test_a_folder_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(FleetFileError, match="directory"):
        load_fleet(tmp_path)


@pytest.mark.parametrize("text", ["a: [1", "a: b: c", "\t- x", "\x00", "a: *unknown"])
def test_invalid_yaml_is_reported_in_one_line(tmp_path: Path, text: str) -> None:
    assert _error_message(tmp_path, text).startswith("not YAML")


def test_a_file_that_is_not_utf_8_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_bytes(b"lake: \xff\xfe\n")
    with pytest.raises(FleetFileError, match="not YAML"):
        load_fleet(tmp_path / "fleet.yaml")


@pytest.mark.parametrize(("text", "type_name"), [("", "NoneType"), ("[1]", "list"), ("words", "str")])
def test_a_document_without_keys_is_rejected(tmp_path: Path, text: str, type_name: str) -> None:
    assert f"found {type_name}" in _error_message(tmp_path, text)


_CLUSTER = DOCUMENT["clusters"][0]


@pytest.mark.parametrize(
    ("document", "key"),
    [
        ({}, "clusters"),
        ({"clusters": []}, "clusters"),
        ({"clusters": [{"bootstrap": "a:1"}]}, "clusters.0.id"),
        ({"clusters": [{"id": "a"}]}, "clusters.0.bootstrap"),
        ({"clusters": [_CLUSTER, {"id": "a b", "bootstrap": "a:1"}]}, "clusters.1.id"),
        ({"clusters": [{"id": "x" * 129, "bootstrap": "a:1"}]}, "clusters.0.id"),
        ({"clusters": [_CLUSTER | {"colour": "red"}]}, "clusters.0.colour"),
        ({"clusters": [_CLUSTER | {"since": "2026-01-01T00:00:00"}]}, "clusters.0.since"),
        ({"clusters": [_CLUSTER | {"since": "2026-01-01"}]}, "clusters.0.since"),
        ({"clusters": [_CLUSTER | {"retired": ["one"]}]}, "clusters.0.retired.0"),
        ({"clusters": [_CLUSTER | {"labels": {"team": ["a"]}}]}, "clusters.0.labels.team"),
        (DOCUMENT | {"lakes": "x"}, "lakes"),
        (DOCUMENT | {"vantage": "zone a"}, "vantage"),
        (DOCUMENT | {"agent_late_ms": 0}, "agent_late_ms"),
        (DOCUMENT | {"week": {"zone": "Mars/Olympus"}}, "week.zone"),
        (DOCUMENT | {"week": {"zone": "../../etc/passwd"}}, "week.zone"),
        (DOCUMENT | {"week": {"start": "Monday"}}, "week.start"),
        (DOCUMENT | {"telemetry": {}}, "telemetry.bootstrap"),
        (DOCUMENT | {"notifiers": [{"kind": "fax", "url": "http://a"}]}, "notifiers.0.kind"),
        (DOCUMENT | {"notifiers": [{"kind": "webhook", "url": "ftp://a"}]}, "notifiers.0.url"),
        (
            DOCUMENT | {"objectives": {"multi-zone": {"latency_p99_ms": 0, "availability": 0.9}}},
            "objectives.multi-zone.latency_p99_ms",
        ),
        (
            DOCUMENT | {"objectives": {"multi-zone": {"latency_p99_ms": 1, "availability": 1}}},
            "objectives.multi-zone.availability",
        ),
        (
            DOCUMENT
            | {
                "telemetry": {
                    "bootstrap": "t:1",
                    "topics": {"probe_pulse": {"name": "p", "partitions": 0, "retention_hours": 1}},
                }
            },
            "telemetry.topics.probe_pulse.partitions",
        ),
    ],
)
def test_an_error_names_the_key(tmp_path: Path, document: dict[str, object], key: str) -> None:
    assert f"; {_error_message(tmp_path, json.dumps(document))}".find(f"; {key}: ") >= 0


def test_all_errors_are_reported_at_once(tmp_path: Path) -> None:
    document = DOCUMENT | {"agent_late_ms": -1, "vantage": "", "lakes": 1}
    message = _error_message(tmp_path, json.dumps(document))
    assert all(f"{key}: " in message for key in ("agent_late_ms", "vantage", "lakes"))


@pytest.mark.parametrize(
    "document",
    [
        DOCUMENT | {"notifiers": [{"kind": "webhook", "url": f"hooks.example/{SECRET}"}]},
        DOCUMENT | {"notifiers": [{"kind": SECRET, "url": "http://a"}]},
        DOCUMENT | {"notifiers": SECRET},
        DOCUMENT | {"password": SECRET},
        DOCUMENT | {"telemetry": {"bootstrap": "t:1", "sasl": {"password": SECRET}}},
        {"clusters": [_CLUSTER | {"since": SECRET}]},
        {"clusters": [_CLUSTER | {"labels": SECRET}]},
    ],
)
def test_an_error_message_never_contains_a_value(tmp_path: Path, document: dict[str, object]) -> None:
    assert SECRET not in _error_message(tmp_path, json.dumps(document))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(key=st.sampled_from([*Fleet.model_fields]), value=_JSON)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_value_is_accepted_or_rejected_with_its_key(tmp_path: Path, key: str, value: object) -> None:
    message = None
    try:
        _load(tmp_path, json.dumps(DOCUMENT | {key: value}))
    except FleetFileError as error:
        message = str(error)
    assert message is None or f" {key}" in message


def test_a_line_with_invalid_yaml_is_numbered_but_never_quoted(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text("clusters: []\nnotifiers: url: https://hooks/SECRET: x\n")
    with pytest.raises(FleetFileError, match="line 2") as caught:
        load_fleet(path)
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize("text", ["clusters: [{since: 2026-13-45}]", "a: !!int abc", "[" * 3000])
def test_values_that_the_yaml_loader_cannot_construct_are_reported(tmp_path: Path, text: str) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(text)
    with pytest.raises(FleetFileError, match="not YAML"):
        load_fleet(path)


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ("lake: a\nclusters: []\nlake: b\n", 3, "lake"),
        ("clusters:\n  - id: a\n    bootstrap: a:1\n    id: b\n", 4, "id"),
        ('{"lake": "a",\n "lake": "b"}', 2, "lake"),
        ("telemetry: {bootstrap: t:1, bootstrap: t:1}\n", 1, "bootstrap"),
    ],
)
def test_a_duplicate_key_is_reported_with_its_line(tmp_path: Path, text: str, line: int, key: str) -> None:
    assert _error_message(tmp_path, text) == f"not YAML: line {line}: '{key}' is given twice"


def test_merge_keys_may_be_overridden(tmp_path: Path) -> None:
    text = """
        clusters:
          - &template {id: a, bootstrap: "a:1", cloud: aws}
          - {<<: *template, id: b}
    """
    clusters = _load(tmp_path, text).clusters
    assert [(cluster.id, cluster.cloud) for cluster in clusters] == [("a", "aws"), ("b", "aws")]


def test_a_list_whose_only_entry_is_invalid_is_not_reported_as_empty(tmp_path: Path) -> None:
    assert _error_message(tmp_path, "clusters: [{bootstrap: a:1}]") == "clusters.0.id: Field required"
    assert _error_message(tmp_path, "clusters: []") == "clusters: expected at least one entry"


@pytest.mark.parametrize(
    ("bootstrap", "allowed"),
    [
        ("kafka:9092", True),
        ("kafka", True),
        ("a.example:1,b.example:2", True),
        ("a:1, b:2", True),
        ("[::1]:9092", True),
        ("", False),
        ("a b", False),
        ("a:1,,b:2", False),
        ("kafka:port", False),
        ("kafka:", False),
        ("http://kafka:9092", False),
    ],
)
def test_a_bootstrap_is_a_list_of_hosts_with_optional_ports(
    tmp_path: Path, bootstrap: str, allowed: bool
) -> None:
    document = json.dumps({"clusters": [{"id": "a", "bootstrap": bootstrap}]})
    if allowed:
        assert _load(tmp_path, document).clusters[0].bootstrap == bootstrap
    else:
        assert _error_message(tmp_path, document).startswith("clusters.0.bootstrap: expected HOST:PORT")


@pytest.mark.parametrize(
    ("bootstrap", "problem"),
    [
        ("a:1,kafka:0", "kafka:0: a port is a number from 1 to 65535"),
        ("kafka:65536", "kafka:65536: a port is a number from 1 to 65535"),
        ("[::1]:99999", "[::1]:99999: a port is a number from 1 to 65535"),
        ("kafka..example:1", "kafka..example:1: kafka..example is neither a host name nor an IP address"),
        ("-kafka:1", "-kafka:1: -kafka is neither a host name nor an IP address"),
        ("kafka_:1,caf\u00e9:1", "caf\u00e9:1: caf\u00e9 is neither a host name nor an IP address"),
        ("10.0.0.256", "10.0.0.256: 10.0.0.256 is neither a host name nor an IP address"),
        ("10.0.1:9092", "10.0.1:9092: 10.0.1 is neither a host name nor an IP address"),
        ("[::1::]", "[::1::]: [::1::] is neither a host name nor an IP address"),
        ("k" * 64, f"{'k' * 64}: {'k' * 64} is neither a host name nor an IP address"),
    ],
)
def test_a_port_or_host_that_cannot_be_is_refused(tmp_path: Path, bootstrap: str, problem: str) -> None:
    document = json.dumps({"clusters": [{"id": "a", "bootstrap": bootstrap}]})
    assert _error_message(tmp_path, document) == f"clusters.0.bootstrap: {problem}"


@pytest.mark.parametrize("key", ["retired", "demoted"])
def test_a_broker_id_is_not_negative(tmp_path: Path, key: str) -> None:
    document = json.dumps({"clusters": [{"id": "a", "bootstrap": "a", key: [0, -1]}]})
    assert _error_message(tmp_path, document).startswith(f"clusters.0.{key}.1: ")


def test_two_uses_need_two_topics(tmp_path: Path) -> None:
    topics = {"demotions": {"name": "x"}, "watch_state": {"name": "x"}}
    document = json.dumps(
        {"clusters": [{"id": "a", "bootstrap": "a"}], "telemetry": {"bootstrap": "t", "topics": topics}}
    )
    assert _error_message(tmp_path, document) == (
        "telemetry.topics: demotions and watch_state need a topic each, not both x"
    )
