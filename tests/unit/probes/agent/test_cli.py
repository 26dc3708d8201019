from pathlib import Path

import pytest
from click.testing import CliRunner

from fleetgauge_probes.agent.cli import probe

CLUSTERS = "clusters: [{id: orders, bootstrap: 'orders:9092'}]\n"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("", "telemetry.bootstrap is missing"),
        ("simulated: true\ntelemetry: {bootstrap: 'telemetry:9092'}\n", "simulated is true"),
    ],
)
def test_a_fleet_that_cannot_be_measured_is_refused_in_one_line(tmp_path: Path, more: str, says: str) -> None:
    config = tmp_path / "fleet.yaml"
    config.write_text(CLUSTERS + more, encoding="utf-8")
    result = CliRunner().invoke(probe, ["--config", str(config)])
    assert (result.exit_code, result.stdout) == (2, "")
    assert says in result.stderr
    assert result.stderr.count("\n") == 1
