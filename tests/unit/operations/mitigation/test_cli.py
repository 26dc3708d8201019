"""The commands of `fleetgauge mitigate` that need no cluster."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fleetgauge_core.tables import ACTIONS, ActionKind, ActionOutcome
from fleetgauge_operations.actions.audit_log import AuditLog
from fleetgauge_operations.actions.plan.case import ActionCase
from fleetgauge_operations.mitigation.cli import mitigate
from tests.browser.lake import put
from tests.unit.operations.mitigation.simulated_cluster import NOON

FLEET = """
clusters:
  - {id: orders, bootstrap: "orders:9092"}
"""
CASE = ActionCase("c1", ActionKind.DEMOTE, "orders", 2, "zone-2", "ann", "DEGRADED", NOON, ActionOutcome.DONE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a fleet file."""
    (tmp_path / "fleet.yaml").write_text(FLEET)
    return tmp_path


def run(folder: Path, *arguments: str) -> Result:
    command, *options = arguments
    return CliRunner().invoke(mitigate, [command, "--config", str(folder / "fleet.yaml"), *options])


def test_history_lists_every_case_with_its_explanations(folder: Path) -> None:
    put(folder / "lake", ACTIONS, [])
    audit_log = AuditLog(str(folder / "lake"))
    audit_log.add_case(CASE)
    refused = replace(
        CASE,
        case_id="c2",
        began=NOON + timedelta(hours=1),
        ended=NOON + timedelta(hours=1),
        outcome=ActionOutcome.REFUSED,
        explanations=("broker 3 is fenced",),
    )
    audit_log.add_case(refused)
    result = run(folder, "history", "--json")
    assert result.exit_code == 0
    first, second = json.loads(result.stdout)
    assert (first["case"], first["outcome"], first["ended"]) == ("c1", "done", None)
    assert (second["outcome"], second["words"]) == ("refused", ["broker 3 is fenced"])
    assert "broker 3 is fenced" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("history",), "no such table"),
        (("plan",), "telemetry.bootstrap is missing"),
        (("apply", "--cluster", "orders", "--broker", "2"), "telemetry.bootstrap is missing"),
        (("undo", "c1"), "telemetry.bootstrap is missing"),
        (("run",), "telemetry.bootstrap is missing"),
    ],
)
def test_a_missing_table_or_telemetry_cluster_is_reported_in_one_line(
    folder: Path, arguments: tuple[str, ...], message: str
) -> None:
    result = run(folder, *arguments)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert message in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("apply", "--cluster", "other", "--broker", "2"), "no cluster other (known: orders)"),
        (("undo", "c9"), "no case c9 is open; see fleetgauge mitigate history"),
    ],
)
def test_an_unknown_cluster_or_case_is_reported_in_one_line(
    folder: Path, arguments: tuple[str, ...], message: str
) -> None:
    (folder / "fleet.yaml").write_text(FLEET + 'telemetry: {bootstrap: "telemetry:9092"}\n')
    put(folder / "lake", ACTIONS, [])
    result = run(folder, *arguments)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert message in result.stderr


@pytest.mark.parametrize("reason", ["", "  "])
@pytest.mark.parametrize("arguments", [("apply", "--cluster", "orders", "--broker", "2"), ("undo", "c1")])
def test_a_blank_reason_is_refused(folder: Path, arguments: tuple[str, ...], reason: str) -> None:
    result = run(folder, *arguments, "--reason", reason)
    assert result.exit_code == 2
    assert "must not be blank: give a reason or omit the option" in result.stderr
