"""A lake in an object store is read like one in a folder; its errors are one line without secrets."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from fleetgauge_core.contract import Leg
from fleetgauge_core.lake.delta_table import describe_table_error
from fleetgauge_dashboards.links import (
    Span,
)
from fleetgauge_dashboards.reader import LakeReader, UnreadableError
from fleetgauge_pipelines.jobs.lake_cli import lake
from tests.browser.lake import ORDERS, write
from tests.ports import free_port
from tests.s3 import S3

NOW = datetime(2026, 3, 5, 2, tzinfo=UTC)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, s3: S3) -> Path:
    """Return the folder of a lake that is also uploaded to the bucket `lakes` under `fleet`."""
    root = tmp_path_factory.mktemp("folder")
    write(root, NOW)
    s3.make_bucket("lakes")
    s3.upload(root, "lakes/fleet")
    return root


def _set_environment(monkeypatch: pytest.MonkeyPatch, environment: Mapping[str, str]) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_a_lake_in_a_bucket_is_read_like_one_in_a_folder(
    s3: S3, folder: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    _set_environment(monkeypatch, s3.environment)
    remote, local = LakeReader(f"{scheme}://lakes/fleet"), LakeReader(str(folder))
    span = Span(NOW - timedelta(hours=1), NOW)
    assert remote.versions() == local.versions()
    assert remote.weeks_of_cluster(ORDERS) == local.weeks_of_cluster(ORDERS) != ()
    assert remote.health_events() == local.health_events()
    assert remote.recent_minutes() == local.recent_minutes()
    assert remote.broker_minutes(ORDERS, Leg.LEADER, span) == local.broker_minutes(ORDERS, Leg.LEADER, span)


def test_the_status_of_a_lake_in_a_bucket_equals_that_of_the_folder(
    s3: S3, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _set_environment(monkeypatch, s3.environment)
    config = tmp_path / "fleet.yaml"
    config.write_text(json.dumps({"clusters": [{"id": "orders-eu", "bootstrap": "orders:9092"}]}))

    def status(location: str) -> object:
        done = CliRunner().invoke(lake, ["status", "--config", str(config), "--lake", location, "--json"])
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    assert status("s3a://lakes/fleet") == status(str(folder))


def test_a_bucket_without_a_lake_is_an_empty_lake(
    s3: S3, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _set_environment(monkeypatch, s3.environment)
    assert LakeReader("s3://lakes/none").weeks() == ()


def _error_message(location: str) -> str:
    with pytest.raises(UnreadableError) as raised:
        LakeReader(location).weeks()
    message = str(raised.value)
    assert "\n" not in message
    assert "kept-to-ourselves" not in message
    assert "AKIAEXAMPLE" not in message
    return message


def test_a_missing_bucket_is_reported(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    _set_environment(monkeypatch, s3.environment)
    assert _error_message("s3://nowhere/fleet") == (
        "gold/cluster_weeks: the bucket does not exist: check the URI of the lake"
    )


def test_wrong_credentials_are_reported(s3: S3, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _set_environment(monkeypatch, s3.environment)
    with s3.rejecting_credentials():
        assert "rejects the credentials: check AWS_ACCESS_KEY_ID" in _error_message("s3://lakes/fleet")


def test_an_endpoint_that_does_not_respond_is_reported(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    _set_environment(monkeypatch, {**s3.environment, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{free_port()}"})
    assert "does not respond: check AWS_ENDPOINT_URL" in _error_message("s3://lakes/fleet")


def test_plain_http_that_is_not_allowed_is_reported(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    _set_environment(monkeypatch, {**s3.environment, "AWS_ALLOW_HTTP": "false"})
    assert "plain HTTP is not allowed: set AWS_ALLOW_HTTP=true" in _error_message("s3://lakes/fleet")


def test_an_error_description_is_one_line_without_colours_stack_traces_or_documents() -> None:
    text = "Kernel error -> Generic error\n \x1b[31m↳\x1b[0m  nothing to read"
    document = "<?xml version='1.0'?><Error>secret</Error>"
    description = describe_table_error(OSError(f"{text} {document}"))
    assert description == "Kernel error -> Generic error ↳ nothing to read"
    assert describe_table_error(OSError("broken 0: deltalake::kernel 1: main")) == "broken"
    assert describe_table_error(OSError()) == "OSError"
    assert len(describe_table_error(OSError("x" * 1000))) == 240


def test_missing_credentials_are_distinguished_from_wrong_ones() -> None:
    error = OSError("Error performing PUT http://169.254.169.254/latest/api/token - 403 Forbidden")
    assert describe_table_error(error) == "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
