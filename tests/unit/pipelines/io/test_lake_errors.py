"""Which file an error of Spark is about."""

import pytest

from fleetgauge_pipelines.io.lake_errors import explain_lake_error, find_damaged_file


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("ChecksumException: Checksum error: file:/my lake/t/3.json at 1024 exp: 13", "/my lake/t/3.json"),
        ("[FAILED_READ_FILE.NO_HINT] Error while reading file file:///t/a.parquet.  S", "/t/a.parquet"),
        ("RuntimeException: file:/lake/t/a.parquet is not a Parquet file. Expected", "/lake/t/a.parquet"),
        ("FileNotFoundException: File s3a://b/t/a.parquet does not exist", "s3a://b/t/a.parquet"),
        ("FileNotFoundException: /lake/t/a.parquet (No such file or directory)", "/lake/t/a.parquet"),
        ("FileNotFoundException: No such file or directory: s3a://b/t/a", "s3a://b/t/a"),
        ("KafkaException: Timed out", None),
    ],
)
def test_the_file_is_found_in_the_error(text: str, name: str | None) -> None:
    assert find_damaged_file(text) == name


def test_only_a_file_of_the_lake_is_damage_of_the_lake() -> None:
    lost = "FileNotFoundException: {} (No such file or directory)"
    assert explain_lake_error(lost.format("/tmp/blockmgr-1/shuffle_1.data"), "/lake") is None
    for lake in ("/lake", "file:///lake/"):
        explanation = explain_lake_error(lost.format("/lake/t/a.parquet"), lake)
        assert explanation is not None
        assert explanation.startswith("/lake/t/a.parquet is damaged or gone: ")


def test_a_full_disk_is_named() -> None:
    explanation = explain_lake_error(
        "java.io.IOException: No space left on device\n\tat java.base/java.io", "/lake"
    )
    assert explanation is not None
    assert explanation.startswith("the disk is full: ")
