import pytest

from fleetgauge_core.fleet import Telemetry
from fleetgauge_core.kafka import build_telemetry_topic_specs
from fleetgauge_core.metadata import (
    SettingDifference,
    build_log_settings,
    build_state_settings,
    find_differences,
)

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
#: Settings whose defaults in a cluster may lose or reject records.
OWN = {
    "cleanup.policy",
    "retention.ms",
    "retention.bytes",
    "segment.ms",
    "segment.bytes",
    "max.message.bytes",
}


@pytest.mark.parametrize("settings", [build_log_settings(HOUR_MS, 3), build_state_settings(3)])
def test_no_default_of_the_cluster_decides_what_is_kept(settings: dict[str, str]) -> None:
    assert settings.keys() >= OWN
    assert settings["min.insync.replicas"] == "2"


def test_records_are_deleted_or_compacted_but_never_both() -> None:
    assert build_log_settings(HOUR_MS, 1)["cleanup.policy"] == "delete"
    assert build_state_settings(1)["cleanup.policy"] == "compact"


@pytest.mark.parametrize(
    ("retention_ms", "segment_ms"), [(HOUR_MS, 600_000), (7 * DAY_MS, 7 * HOUR_MS), (300 * DAY_MS, DAY_MS)]
)
def test_a_segment_spans_a_small_part_of_the_retention(retention_ms: int, segment_ms: int) -> None:
    assert build_log_settings(retention_ms, 1)["segment.ms"] == str(segment_ms)


def test_the_record_topics_keep_what_the_fleet_file_says() -> None:
    specs = build_telemetry_topic_specs(Telemetry(bootstrap="localhost:9092"), brokers=3)
    assert [int(spec.settings["retention.ms"]) // DAY_MS for spec in specs] == [7, 1, 30]


def test_only_settings_that_could_be_read_differ() -> None:
    specified = build_log_settings(HOUR_MS, 3)
    assert find_differences(specified, {}) == ()
    assert find_differences(specified, specified | {"compression.type": "zstd"}) == ()
    (difference,) = find_differences(specified, {"cleanup.policy": "compact"})
    assert difference == SettingDifference("cleanup.policy", "compact", "delete")
    assert str(difference) == "cleanup.policy=compact instead of delete"


def test_a_topic_with_fewer_replicas_than_specified_stays_writable_without_one_of_them() -> None:
    specified = build_log_settings(HOUR_MS, 3)
    assert find_differences(specified, {"min.insync.replicas": "1"}, [3, 2]) == ()
    assert find_differences(specified, {"min.insync.replicas": "2"}, [3, 1]) == (
        SettingDifference("min.insync.replicas", "2", "1"),
    )
