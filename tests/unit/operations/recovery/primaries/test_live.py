"""A look at all, and the user's commands; clusters are stood in for."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_operations.recovery.offsets.mirror_state import Known
from fleetgauge_operations.recovery.plan.sync_decision import Pair
from fleetgauge_operations.recovery.primaries import live
from fleetgauge_operations.recovery.primaries.commands import CommandError
from fleetgauge_operations.recovery.primaries.live import LiveScene
from fleetgauge_operations.recovery.primaries.plan.primary_lease import ClaimsError
from fleetgauge_operations.recovery.primaries.plan.promotion import Name
from fleetgauge_operations.recovery.regions import Regions
from tests.unit.operations.recovery.primaries.scripts import script

SAYS = """echo '[{"service": "{to}", "primary": "north", "epoch": 3}]'"""


@dataclass
class Collector:
    """Every look finds a hundred records more in north, and a second later."""

    answering: frozenset[str]
    known: Known = field(default_factory=Known)
    ends: dict[str, dict[tuple[str, int], int]] = field(default_factory=dict)

    def look(self) -> bool:
        before = self.ends.get("north", {}).get(("orders", 0), 0)
        self.ends = {"north": {("orders", 0): before + 100}}
        return True


class Mover:
    """Its active cluster does not answer."""

    pair = Pair("north", "south")

    def plans(self, known: Known, only: str | None = None) -> Iterator[Any]:
        raise KafkaUnavailableError("north: no answer")


def scene(
    folder: Path,
    store: str = SAYS,
    hook: str = "",
    movers: tuple[Mover, ...] = (),
    answering: frozenset[str] = frozenset({"north", "south"}),
) -> LiveScene:
    """Of a service that is called as a placeholder is."""
    fleet = Fleet.model_validate(
        {
            "clusters": [
                {"id": one, "bootstrap": "127.0.0.1:1", "region": one} for one in ("north", "south")
            ],
            "recovery": {
                "mirrors": [{"source": "north", "destination": "south"}],
                "capacities": [{"cluster": "south", "records_per_s": 60}],
                "primaries": {
                    "command": [script(folder, store)],
                    "services": {"{to}": ".*"},
                    "promote": [script(folder, hook, "hook"), "{service}", "{from}>{to}", "{epoch}", "{}{x}"],
                },
            },
        }
    )
    primaries = fleet.recovery.primaries
    assert primaries is not None
    collector = cast("Any", Collector(answering))
    regions = Regions(fleet, "", cast("Any", None), collector, cast("Any", movers))
    return LiveScene(regions, primaries, "{to}", Pair("north", "south"), lambda pause_s: None)


def test_the_command_is_given_what_it_is_about_word_by_word(tmp_path: Path) -> None:
    given = tmp_path / "given"
    scene(tmp_path, hook=f"""printf '%s\\n' "$@" >{given}""").promote(4)
    assert given.read_text().splitlines() == ["{to}", "north>south", "4", "{}{x}"]


def test_a_command_that_fails_is_told_by_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"hook ended with 2: epoch 4 is taken$"):
        scene(tmp_path, hook="echo no >&2; echo epoch 4 is taken >&2; exit 2").promote(4)


def test_two_looks_and_the_claims_are_weighed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1_000, 9_000_000, 2_000))
    monkeypatch.setattr(live, "now_ms", lambda: next(clock))
    found = scene(tmp_path).promotion()
    assert (found.service, found.epoch) == ("{to}", 4)
    by_name = {one.name: (one.holds, one.words) for one in found.preconditions}
    assert by_name[Name.LABEL] == (True, "north at epoch 3, without an end")
    assert by_name[Name.HEADROOM] == (True, "50 records/s, of 60 that south takes")


@pytest.mark.parametrize("answering", [{"north", "south"}, {"south"}])
def test_groups_of_a_cluster_that_does_not_answer_cannot_be_seen(tmp_path: Path, answering: set[str]) -> None:
    found = scene(tmp_path, movers=(Mover(),), answering=frozenset(answering)).promotion()
    (groups,) = [one for one in found.preconditions if one.name is Name.GROUPS]
    assert (groups.holds, groups.words) == (None, "groups of north cannot be seen")


def test_a_store_that_cannot_be_read_ends_it(tmp_path: Path) -> None:
    with pytest.raises(ClaimsError, match="no database"):
        scene(tmp_path, store="echo no database >&2; exit 1").promotion()


def test_the_claims_alone_are_read_again(tmp_path: Path) -> None:
    one = scene(tmp_path)
    standing = one.standing()
    assert standing.primary is not None
    assert (standing.primary.primary, standing.finding) == ("north", None)
    assert one.is_passive("south")
    assert not one.is_passive("north")
    assert not one.is_passive("nowhere")
