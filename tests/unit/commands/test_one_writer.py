"""Commands that write to a lake of which another process holds the lease."""

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from fleetgauge_core.runtime.cli import main
from tests.browser.lake import ORDERS
from tests.lake_writer import another_holder
from tests.promises.run_promises import write_inputs
from tests.s3 import S3

WRITERS = (
    ("stream",),
    ("run",),
    ("backfill", "--from", "records"),
    ("quarantine", "replay"),
    ("lake", "compact"),
)


@pytest.fixture
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a lake and a fleet file whose brokers do not exist."""
    monkeypatch.chdir(tmp_path)
    write_inputs(tmp_path)
    (tmp_path / "records").mkdir()
    document = {
        "clusters": [{"id": ORDERS, "bootstrap": "orders:9092"}],
        "telemetry": {"bootstrap": "telemetry:9092"},
    }
    (tmp_path / "fleet.yaml").write_text(yaml.safe_dump(document))
    monkeypatch.setattr("fleetgauge_pipelines.io.session.open_session", lambda *_: pytest.fail("it starts"))
    return tmp_path


def assert_refused(lake: str, *command: str) -> None:
    with another_holder(lake) as holder:
        result = CliRunner().invoke(main, [*command, "--lake", lake], prog_name="fleetgauge")
        last_line = result.stderr.splitlines()[-1]
        assert result.exit_code == 2, result.output
        assert f"{lake}: another pipeline is writing this lake by `fleetgauge stream` on " in last_line
        assert f"(process {holder.pid}) since " in last_line
        assert "Traceback" not in result.output


@pytest.mark.parametrize("command", WRITERS)
def test_a_second_writer_of_a_lake_in_a_folder_is_refused(inputs: Path, command: tuple[str, ...]) -> None:
    assert_refused(str(inputs / "lake"), *command)


def test_a_second_writer_of_a_lake_at_a_file_uri_is_refused(inputs: Path) -> None:
    assert_refused(f"file://{inputs}/lake", "stream")


def test_a_second_writer_of_a_lake_in_an_object_store_is_refused(
    inputs: Path, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    s3.make_bucket("written")
    s3.upload(inputs / "lake", "written/lake")
    assert_refused("s3://written/lake", "lake", "compact")
