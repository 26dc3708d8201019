"""`fleetgauge recover promote` with invalid options or configuration; no cluster is reachable."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from fleetgauge_operations.recovery.cli import recover

OPTIONS = ("--service", "billing", "--from", "north", "--to", "south")


def promote(folder: Path, primaries: dict[str, Any] | None, *arguments: str) -> Result:
    document: dict[str, Any] = {
        "clusters": [{"id": name, "bootstrap": "127.0.0.1:1", "region": name} for name in ("north", "south")],
        "recovery": {"mirrors": [{"source": "north", "destination": "south"}]},
    }
    if primaries is not None:
        document["recovery"]["primaries"] = {"services": {"billing": "billing-.*"}} | primaries
    file = folder / "fleet.yaml"
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    return CliRunner().invoke(recover, ["promote", *(arguments or OPTIONS), "--config", str(file)])


STORE = {"command": ["labels"]}


@pytest.mark.parametrize(
    ("primaries", "arguments", "line"),
    [
        (None, OPTIONS, "recovery.primaries is missing: configure the store"),
        (
            STORE,
            ("--service", "orders", *OPTIONS[2:]),
            "recovery.primaries.services has no 'orders' (known: billing)",
        ),
        (STORE, (*OPTIONS[:4], "--to", "east"), "no cluster 'east' (known: north, south)"),
        (STORE, (*OPTIONS[:2], "--from", "east", *OPTIONS[4:]), "no cluster 'east' (known: north, south)"),
        (STORE, (*OPTIONS[:4], "--to", "north"), "cannot promote north to replace itself"),
        (STORE, (*OPTIONS, "--execute"), "recovery.primaries.promote is empty: configure the command"),
        (STORE, (*OPTIONS, "--despite", "luck"), "'luck' is not one of 'label', 'aggregates', 'input_lag'"),
    ],
)
def test_an_invalid_promotion_fails_with_one_line_and_exit_code_2(
    tmp_path: Path, primaries: dict[str, Any] | None, arguments: tuple[str, ...], line: str
) -> None:
    invocation = promote(tmp_path, primaries, *arguments)
    assert (invocation.exit_code, invocation.stdout) == (2, "")
    assert line in invocation.stderr
