"""Lakes in an object store read as in a folder, and what is wrong there is one line without a secret."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from fleetgauge_core.lake.delta_table import reason
from fleetgauge_dashboards.links import Leg, Span
from fleetgauge_dashboards.reader import Lake, UnreadableError
from fleetgauge_pipelines.jobs.lake_cli import lake
from tests.browser.lake import ORDERS, write
from tests.ports import free_port
from tests.s3 import S3

NOW = datetime(2026, 3, 5, 2, tzinfo=UTC)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, s3: S3) -> Path:
    """A lake, which the bucket `lakes` has under `fleet`."""
    root = tmp_path_factory.mktemp("folder")
    write(root, NOW)
    s3.make_bucket("lakes")
    s3.upload(root, "lakes/fleet")
    return root


def _told(monkeypatch: pytest.MonkeyPatch, environment: Mapping[str, str]) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_a_lake_in_a_bucket_reads_as_it_does_in_a_folder(
    s3: S3, folder: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    _told(monkeypatch, s3.environment)
    there, here = Lake(f"{scheme}://lakes/fleet"), Lake(str(folder))
    span = Span(NOW - timedelta(hours=1), NOW)
    assert there.versions() == here.versions()
    assert there.weeks_of(ORDERS) == here.weeks_of(ORDERS) != ()
    assert there.health_events() == here.health_events()
    assert there.recent_minutes() == here.recent_minutes()
    assert there.broker_minutes(ORDERS, Leg.LEADER, span) == here.broker_minutes(ORDERS, Leg.LEADER, span)


def test_status_of_a_lake_in_a_bucket_is_that_of_the_folder(
    s3: S3, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _told(monkeypatch, s3.environment)
    config = tmp_path / "fleet.yaml"
    config.write_text(json.dumps({"clusters": [{"id": "orders-eu", "bootstrap": "orders:9092"}]}))

    def status(where: str) -> object:
        done = CliRunner().invoke(lake, ["status", "--config", str(config), "--lake", where, "--json"])
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    assert status("s3a://lakes/fleet") == status(str(folder))


def test_a_bucket_without_a_lake_is_an_empty_lake(
    s3: S3, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _told(monkeypatch, s3.environment)
    assert Lake("s3://lakes/none").weeks() == ()


def _said(where: str) -> str:
    with pytest.raises(UnreadableError) as raised:
        Lake(where).weeks()
    said = str(raised.value)
    assert "\n" not in said
    assert "kept-to-ourselves" not in said
    assert "AKIAEXAMPLE" not in said
    return said


def test_a_bucket_that_is_not_there_is_said(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    _told(monkeypatch, s3.environment)
    assert _said("s3://nowhere/fleet") == (
        "gold/cluster_weeks: there is no such bucket: check the lake's URI"
    )


def test_wrong_credentials_are_said(s3: S3, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _told(monkeypatch, s3.environment)
    with s3.knowing_nobody():
        assert "refuses the credentials: check AWS_ACCESS_KEY_ID" in _said("s3://lakes/fleet")


def test_an_endpoint_that_does_not_answer_is_said(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    _told(monkeypatch, {**s3.environment, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{free_port()}"})
    assert "does not answer: check AWS_ENDPOINT_URL" in _said("s3://lakes/fleet")


def test_plain_http_that_was_not_allowed_is_said(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    _told(monkeypatch, {**s3.environment, "AWS_ALLOW_HTTP": "false"})
    assert "plain http is refused: set AWS_ALLOW_HTTP=true" in _said("s3://lakes/fleet")


def test_a_reason_is_one_line_without_colours_stacks_or_documents() -> None:
    told = "Kernel error -> Generic error\n \x1b[31m↳\x1b[0m  no such luck"
    document = "<?xml version='1.0'?><Error>secret</Error>"
    assert reason(OSError(f"{told} {document}")) == "Kernel error -> Generic error ↳ no such luck"
    assert reason(OSError("broken 0: deltalake::kernel 1: main")) == "broken"
    assert reason(OSError()) == "OSError"
    assert len(reason(OSError("x" * 1000))) == 240


def test_no_credentials_are_told_from_wrong_ones() -> None:
    asked = OSError("Error performing PUT http://169.254.169.254/latest/api/token - 403 Forbidden")
    assert reason(asked) == "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
