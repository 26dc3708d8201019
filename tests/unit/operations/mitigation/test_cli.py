import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fleetgauge_core.tables import ACTIONS
from fleetgauge_operations.mitigation.audit_log import AuditLog
from fleetgauge_operations.mitigation.case import Action, CaseOutcome, MitigationCase
from fleetgauge_operations.mitigation.cli import mitigate
from tests.browser.lake import put
from tests.unit.operations.mitigation.simulated_cluster import NOON

FLEET = """
clusters:
  - {id: orders, bootstrap: "orders:9092"}
"""
CASE = MitigationCase("c1", Action.DEMOTE, "orders", 2, "zone-2", "ann", "DEGRADED", NOON, CaseOutcome.DONE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "fleet.yaml").write_text(FLEET)
    return tmp_path


def run(folder: Path, *arguments: str) -> Result:
    command, *rest = arguments
    return CliRunner().invoke(mitigate, [command, "--config", str(folder / "fleet.yaml"), *rest])


def test_every_case_is_listed_with_what_was_said_of_it(folder: Path) -> None:
    put(folder / "lake", ACTIONS, [])
    record = AuditLog(str(folder / "lake"))
    record.add_case(CASE)
    refused = replace(
        CASE,
        case_id="c2",
        began=NOON + timedelta(hours=1),
        ended=NOON + timedelta(hours=1),
        outcome=CaseOutcome.REFUSED,
        words=("broker 3 is fenced",),
    )
    record.add_case(refused)
    done = run(folder, "history", "--json")
    assert done.exit_code == 0
    first, second = json.loads(done.stdout)
    assert (first["case"], first["outcome"], first["ended"]) == ("c1", "done", None)
    assert (second["outcome"], second["words"]) == ("refused", ["broker 3 is fenced"])
    assert "broker 3 is fenced" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("history",), "no such table"),
        (("plan",), "telemetry.bootstrap is missing"),
        (("apply", "--cluster", "orders", "--broker", "2"), "telemetry.bootstrap is missing"),
        (("undo", "c1"), "telemetry.bootstrap is missing"),
        (("run",), "telemetry.bootstrap is missing"),
    ],
)
def test_what_is_missing_is_one_line(folder: Path, arguments: tuple[str, ...], said: str) -> None:
    done = run(folder, *arguments)
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert said in done.stderr


def test_a_cluster_or_a_case_that_is_not_known_is_one_line(folder: Path) -> None:
    (folder / "fleet.yaml").write_text(FLEET + 'telemetry: {bootstrap: "telemetry:9092"}\n')
    put(folder / "lake", ACTIONS, [])
    for arguments, said in (
        (("apply", "--cluster", "other", "--broker", "2"), "no cluster other (known: orders)"),
        (("undo", "c9"), "no case c9 is open; see fleetgauge mitigate history"),
    ):
        done = run(folder, *arguments)
        assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
        assert said in done.stderr


@pytest.mark.parametrize("arguments", [("apply", "--cluster", "orders", "--broker", "2"), ("undo", "c1")])
def test_a_blank_reason_is_none(folder: Path, arguments: tuple[str, ...]) -> None:
    for blank in ("", "  "):
        done = run(folder, *arguments, "--reason", blank)
        assert done.exit_code == 2
        assert "must not be blank: give a reason or omit the option" in done.stderr
