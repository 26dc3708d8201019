"""`fleetgauge recover promote`, before and without any cluster that answers."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from fleetgauge_operations.recovery.cli import recover

WAY = ("--service", "billing", "--from", "north", "--to", "south")


def promote(folder: Path, primaries: dict[str, Any] | None, *arguments: str) -> Result:
    document: dict[str, Any] = {
        "clusters": [{"id": one, "bootstrap": "127.0.0.1:1", "region": one} for one in ("north", "south")],
        "recovery": {"mirrors": [{"source": "north", "destination": "south"}]},
    }
    if primaries is not None:
        document["recovery"]["primaries"] = {"services": {"billing": "billing-.*"}} | primaries
    file = folder / "fleet.yaml"
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    return CliRunner().invoke(recover, ["promote", *(arguments or WAY), "--config", str(file)])


SAYS = {"command": ["labels"]}


@pytest.mark.parametrize(
    ("primaries", "arguments", "line"),
    [
        (None, WAY, "recovery.primaries is missing: say where"),
        (
            SAYS,
            ("--service", "orders", *WAY[2:]),
            "recovery.primaries.services has no 'orders' (known: billing)",
        ),
        (SAYS, (*WAY[:4], "--to", "east"), "no cluster 'east' (known: north, south)"),
        (SAYS, (*WAY[:2], "--from", "east", *WAY[4:]), "no cluster 'east' (known: north, south)"),
        (SAYS, (*WAY[:4], "--to", "north"), "from north to itself is nowhere"),
        (SAYS, (*WAY, "--execute"), "recovery.primaries.promote is empty: say which command"),
        (SAYS, (*WAY, "--despite", "luck"), "'luck' is not one of 'label', 'aggregates', 'input_lag'"),
    ],
)
def test_what_cannot_be_is_one_line_and_exit_code_2(
    tmp_path: Path, primaries: dict[str, Any] | None, arguments: tuple[str, ...], line: str
) -> None:
    done = promote(tmp_path, primaries, *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert line in done.stderr
