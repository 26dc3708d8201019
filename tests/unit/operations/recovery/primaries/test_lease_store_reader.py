"""Claims, as a command of the user's prints them."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from fleetgauge_core.fleet import Fleet
from fleetgauge_operations.recovery.primaries.commands import CommandError, ran
from fleetgauge_operations.recovery.primaries.lease_store_reader import claims_now, findings_now
from fleetgauge_operations.recovery.primaries.plan.primary_lease import Claim, ClaimsError
from fleetgauge_operations.recovery.primaries.plan.primary_state import Finding, Kind
from tests.unit.operations.recovery.primaries.scripts import script

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)


def fleet_of(command: str, *arguments: str) -> Fleet:
    clusters = [{"id": one, "bootstrap": "127.0.0.1:1", "region": one} for one in ("north", "south")]
    return Fleet.model_validate(
        {
            "clusters": clusters,
            "recovery": {
                "mirrors": [{"source": "north", "destination": "south"}],
                "primaries": {"command": [command, *arguments], "services": {"billing": "billing-.*"}},
            },
        }
    )


def claims_of(fleet: Fleet) -> tuple[Claim, ...]:
    assert fleet.recovery.primaries is not None
    return claims_now(fleet.recovery.primaries, fleet)


def test_a_command_says_who_claims_what(tmp_path: Path) -> None:
    says = script(tmp_path, """echo '[{"service": "billing", "primary": "'"$1"'"}]'; echo hush >&2""")
    assert claims_of(fleet_of(says, "north; rm -rf $HOME")) == (Claim("billing", "north; rm -rf $HOME"),)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("echo one >&2; echo '  no such table ' >&2; exit 3", "labels ended with 3: no such table"),
        ("exit 1", "labels ended with 1: no word"),
        ("kill -9 $$", "labels ended with -9: no word"),
        ("", "labels: line 1 is not JSON"),
        ("""echo '[{"service": "billing"}]'""", "labels: [0]: primary is missing"),
    ],
)
def test_a_command_that_does_not_say_so_is_one_line(tmp_path: Path, body: str, words: str) -> None:
    with pytest.raises(ClaimsError) as refusal:
        claims_of(fleet_of(script(tmp_path, body)))
    (line,) = str(refusal.value).splitlines()
    assert line.startswith(f"recovery.primaries.command: {tmp_path}/")
    assert words in line


def test_a_command_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ClaimsError, match=r"none: No such file or directory$"):
        claims_of(fleet_of(str(tmp_path / "none")))


def test_a_command_that_does_not_end_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    alive = tmp_path / "alive"
    with pytest.raises(CommandError, match=r"not done after 0\.3 s, and killed$"):
        ran([script(tmp_path, f"(sleep 1; touch {alive}) & wait")], 0.3)
    ran(["/bin/sleep", "1"], 5)
    assert not alive.exists()


def test_a_command_is_asked_nothing_and_may_ask_nothing(tmp_path: Path) -> None:
    assert ran([script(tmp_path, "cat; echo done")], 5) == b"done\n"


def test_findings_are_of_the_services_that_the_fleet_file_names(tmp_path: Path) -> None:
    says = script(
        tmp_path,
        """echo '[{"service": "billing", "primary": "north"}, {"service": "other", "primary": "nowhere"}]'""",
    )
    fleet = fleet_of(says)
    assert findings_now(fleet, frozenset({"north"}), NOW) == ()
    words = "north without an epoch, without an end: nothing answers of north"
    dead = Finding(Kind.PRIMARY_DEAD, "billing", words)
    assert findings_now(fleet, frozenset({"south"}), NOW) == (dead,)


def test_a_fleet_without_a_store_has_none() -> None:
    fleet = Fleet.model_validate({"clusters": [{"id": "a", "bootstrap": "127.0.0.1:1"}]})
    assert findings_now(fleet, frozenset(), NOW) == ()
