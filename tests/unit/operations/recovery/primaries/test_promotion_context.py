"""The promotion context with real commands and substitutes for clusters."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from fleetgauge_core.fleet import Fleet
from fleetgauge_core.kafka import KafkaUnavailableError
from fleetgauge_operations.recovery.offsets.mirror_state import ReplicationState
from fleetgauge_operations.recovery.plan.sync_decision import ClusterPair
from fleetgauge_operations.recovery.primaries import promotion_context
from fleetgauge_operations.recovery.primaries.commands import CommandError
from fleetgauge_operations.recovery.primaries.plan.precondition_name import PreconditionName
from fleetgauge_operations.recovery.primaries.plan.primary_lease import PrimaryLeaseError
from fleetgauge_operations.recovery.primaries.promotion_context import LivePromotionContext
from fleetgauge_operations.recovery.recovery_context import RecoveryContext
from tests.unit.operations.recovery.primaries.scripts import write_script

STORE = """echo '[{"service": "{to}", "primary": "north", "epoch": 3}]'"""


@dataclass
class SyncCollector:
    """Each observation shows a hundred more records in north."""

    reachable: frozenset[str]
    state: ReplicationState = field(default_factory=ReplicationState)
    source_ends: dict[str, dict[tuple[str, int], int]] = field(default_factory=dict)

    def collect(self) -> bool:
        before = self.source_ends.get("north", {}).get(("orders", 0), 0)
        self.source_ends = {"north": {("orders", 0): before + 100}}
        return True


class GroupOffsetSync:
    """A group sync whose active cluster is unreachable."""

    pair = ClusterPair("north", "south")

    def plan_groups(self, state: ReplicationState, only: str | None = None) -> Iterator[Any]:
        raise KafkaUnavailableError("north: no answer")


def build_context(
    folder: Path,
    store: str = STORE,
    hook: str = "",
    group_syncs: tuple[GroupOffsetSync, ...] = (),
    reachable: frozenset[str] = frozenset({"north", "south"}),
) -> LivePromotionContext:
    """Return the context of a service whose name looks like a placeholder."""
    fleet = Fleet.model_validate(
        {
            "clusters": [
                {"id": name, "bootstrap": "127.0.0.1:1", "region": name} for name in ("north", "south")
            ],
            "recovery": {
                "mirrors": [{"source": "north", "destination": "south"}],
                "capacities": [{"cluster": "south", "records_per_s": 60}],
                "primaries": {
                    "command": [write_script(folder, store)],
                    "services": {"{to}": ".*"},
                    "promote": [
                        write_script(folder, hook, "hook"),
                        "{service}",
                        "{from}>{to}",
                        "{epoch}",
                        "{}{x}",
                    ],
                },
            },
        }
    )
    primaries = fleet.recovery.primaries
    assert primaries is not None
    collector = cast("Any", SyncCollector(reachable))
    recovery = RecoveryContext(fleet, "", cast("Any", None), collector, cast("Any", group_syncs))
    return LivePromotionContext(
        recovery, primaries, "{to}", ClusterPair("north", "south"), lambda pause_s: None
    )


def test_placeholders_are_replaced_once_per_argument(tmp_path: Path) -> None:
    given = tmp_path / "given"
    build_context(tmp_path, hook=f"""printf '%s\\n' "$@" >{given}""").promote(4)
    assert given.read_text().splitlines() == ["{to}", "north>south", "4", "{}{x}"]


def test_a_failing_command_is_reported_with_its_last_error_line(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"hook exited with 2: epoch 4 is taken$"):
        build_context(tmp_path, hook="echo no >&2; echo epoch 4 is taken >&2; exit 2").promote(4)


def test_rates_and_leases_are_checked_against_the_preconditions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(1_000, 9_000_000, 2_000))
    monkeypatch.setattr(promotion_context, "now_ms", lambda: next(clock))
    plan = build_context(tmp_path).plan()
    assert (plan.service, plan.epoch) == ("{to}", 4)
    by_name = {
        precondition.name: (precondition.holds, precondition.explanation)
        for precondition in plan.preconditions
    }
    assert by_name[PreconditionName.LABEL] == (True, "north at epoch 3, without expiry")
    assert by_name[PreconditionName.HEADROOM] == (True, "50 records/s of a capacity of 60 records/s in south")


@pytest.mark.parametrize("reachable", [{"north", "south"}, {"south"}])
def test_groups_of_an_unreachable_cluster_are_unknown(tmp_path: Path, reachable: set[str]) -> None:
    plan = build_context(tmp_path, group_syncs=(GroupOffsetSync(),), reachable=frozenset(reachable)).plan()
    (groups,) = [
        precondition for precondition in plan.preconditions if precondition.name is PreconditionName.GROUPS
    ]
    assert (groups.holds, groups.explanation) == (None, "the groups of north cannot be read")


def test_an_unreadable_lease_store_ends_the_promotion(tmp_path: Path) -> None:
    with pytest.raises(PrimaryLeaseError, match="no database"):
        build_context(tmp_path, store="echo no database >&2; exit 1").plan()


def test_the_primary_state_is_read_from_the_leases_alone(tmp_path: Path) -> None:
    context = build_context(tmp_path)
    state = context.read_primary_state()
    assert state.primary is not None
    assert (state.primary.primary, state.finding) == ("north", None)
    assert context.is_target("south")
    assert not context.is_target("north")
    assert not context.is_target("nowhere")
