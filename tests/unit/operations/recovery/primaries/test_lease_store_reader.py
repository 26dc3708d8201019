"""Leases printed by a configured command."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from fleetgauge_core.fleet import Fleet
from fleetgauge_operations.recovery.primaries.commands import CommandError, run_command
from fleetgauge_operations.recovery.primaries.lease_store_reader import read_leases, read_primary_findings
from fleetgauge_operations.recovery.primaries.plan.primary_lease import PrimaryLease, PrimaryLeaseError
from fleetgauge_operations.recovery.primaries.plan.primary_state import PrimaryFinding, PrimaryFindingKind
from tests.unit.operations.recovery.primaries.scripts import write_script

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)


def fleet_of(command: str, *arguments: str) -> Fleet:
    clusters = [{"id": name, "bootstrap": "127.0.0.1:1", "region": name} for name in ("north", "south")]
    return Fleet.model_validate(
        {
            "clusters": clusters,
            "recovery": {
                "mirrors": [{"source": "north", "destination": "south"}],
                "primaries": {"command": [command, *arguments], "services": {"billing": "billing-.*"}},
            },
        }
    )


def read_fleet_leases(fleet: Fleet) -> tuple[PrimaryLease, ...]:
    assert fleet.recovery.primaries is not None
    return read_leases(fleet.recovery.primaries, fleet)


def test_leases_are_read_from_the_output_of_a_command(tmp_path: Path) -> None:
    command = write_script(
        tmp_path, """echo '[{"service": "billing", "primary": "'"$1"'"}]'; echo hush >&2"""
    )
    assert read_fleet_leases(fleet_of(command, "north; rm -rf $HOME")) == (
        PrimaryLease("billing", "north; rm -rf $HOME"),
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("echo one >&2; echo '  no such table ' >&2; exit 3", "labels exited with 3: no such table"),
        ("exit 1", "labels exited with 1: no error output"),
        ("kill -9 $$", "labels exited with -9: no error output"),
        ("", "labels: line 1 is not valid JSON"),
        ("""echo '[{"service": "billing"}]'""", "labels: [0]: primary is missing"),
    ],
)
def test_a_failing_command_is_reported_in_one_line(tmp_path: Path, body: str, message: str) -> None:
    with pytest.raises(PrimaryLeaseError) as refusal:
        read_fleet_leases(fleet_of(write_script(tmp_path, body)))
    (line,) = str(refusal.value).splitlines()
    assert line.startswith(f"recovery.primaries.command: {tmp_path}/")
    assert message in line


def test_a_missing_command_is_reported_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(PrimaryLeaseError, match=r"none: No such file or directory$"):
        read_fleet_leases(fleet_of(str(tmp_path / "none")))


def test_a_command_that_times_out_is_killed_with_its_children(tmp_path: Path) -> None:
    alive = tmp_path / "alive"
    with pytest.raises(CommandError, match=r"killed after a timeout of 0\.3 s$"):
        run_command([write_script(tmp_path, f"(sleep 1; touch {alive}) & wait")], 0.3)
    run_command(["/bin/sleep", "1"], 5)
    assert not alive.exists()


def test_a_command_gets_no_standard_input(tmp_path: Path) -> None:
    assert run_command([write_script(tmp_path, "cat; echo done")], 5) == b"done\n"


def test_findings_cover_the_configured_services_only(tmp_path: Path) -> None:
    command = write_script(
        tmp_path,
        """echo '[{"service": "billing", "primary": "north"}, {"service": "other", "primary": "nowhere"}]'""",
    )
    fleet = fleet_of(command)
    assert read_primary_findings(fleet, frozenset({"north"}), NOW) == ()
    message = "north without an epoch, without expiry: unreachable: north"
    dead = PrimaryFinding(PrimaryFindingKind.PRIMARY_DEAD, "billing", message)
    assert read_primary_findings(fleet, frozenset({"south"}), NOW) == (dead,)


def test_a_fleet_without_a_lease_store_has_no_findings() -> None:
    fleet = Fleet.model_validate({"clusters": [{"id": "a", "bootstrap": "127.0.0.1:1"}]})
    assert read_primary_findings(fleet, frozenset(), NOW) == ()
