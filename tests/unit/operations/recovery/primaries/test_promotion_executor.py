"""What is done, and what is said of it."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest

from fleetgauge_operations.recovery.primaries.commands import CommandError
from fleetgauge_operations.recovery.primaries.plan.primary_lease import Claim, ClaimsError
from fleetgauge_operations.recovery.primaries.plan.primary_state import Finding, Kind, Standing
from fleetgauge_operations.recovery.primaries.plan.promotion import Name, Precondition, Promotion
from fleetgauge_operations.recovery.primaries.promote_output import promoted_document, promoted_lines
from fleetgauge_operations.recovery.primaries.promotion_executor import Outcome, Promoted, Promoter
from tests.unit.operations.recovery.primaries.sights import PAIR

FINE = tuple(Precondition(name, True, "so") for name in Name)
OF_NORTH, OF_SOUTH = Claim("billing", "north", 3), Claim("billing", "south", 4)
TWO = Standing("billing", (OF_SOUTH, OF_NORTH), None, Finding(Kind.PRIMARY_TWO, "billing", "2 claim it"))


def one(claim: Claim) -> Standing:
    return Standing("billing", (claim,), claim, None)


@dataclass
class World:
    """Claims are read one after the other, the last again and again; time passes in waiting only."""

    preconditions: tuple[Precondition, ...] = FINE
    after: Iterable[Standing | str] = (one(OF_SOUTH),)
    fails: str = ""
    promoted: list[int] = field(default_factory=list)
    waited_s: float = 0.0

    def __post_init__(self) -> None:
        self.left = list(self.after)

    def promotion(self) -> Promotion:
        return Promotion("billing", PAIR, 4, self.preconditions)

    def standing(self) -> Standing:
        found = self.left.pop(0) if len(self.left) > 1 else self.left[0]
        if isinstance(found, str):
            raise ClaimsError(found)
        return found

    def is_passive(self, primary: str) -> bool:
        return primary in ("south", "south-all")

    def promote(self, epoch: int) -> None:
        self.promoted.append(epoch)
        if self.fails:
            raise CommandError(self.fails)

    def wait(self, pause_s: float) -> None:
        self.waited_s += pause_s

    def run(self, execute: bool = True, despite: Iterable[str] = ()) -> tuple[Outcome, str]:
        found = Promoter(self, lambda: self.waited_s, self.wait).run(execute, frozenset(despite))
        assert found.is_fine == (found.outcome in (Outcome.DRY_RUN, Outcome.PROMOTED))
        return found.outcome, found.words


def test_a_dry_run_does_nothing() -> None:
    world = World()
    assert world.run(execute=False) == (Outcome.DRY_RUN, "a dry run: --execute promotes")
    assert world.promoted == []


@pytest.mark.parametrize("execute", [True, False])
@pytest.mark.parametrize("holds", [False, None])
def test_what_does_not_hold_is_refused_unless_somebody_answers_for_it(
    execute: bool, holds: bool | None
) -> None:
    world = World(
        (Precondition(Name.GROUPS, holds, "not so"), *FINE[:3], Precondition(Name.HEADROOM, None, ""))
    )
    outcome, words = world.run(execute, despite=["headroom"])
    assert (outcome, words.split(":")[0], world.promoted) == (Outcome.REFUSED, "groups", [])
    outcome, _ = world.run(execute, despite=["headroom", "groups"])
    assert (outcome, world.promoted) == ((Outcome.PROMOTED, [4]) if execute else (Outcome.DRY_RUN, []))


def test_it_is_promoted_once_and_only_when_the_claims_say_so() -> None:
    world = World(after=(one(OF_NORTH), TWO, "labels ended with 1: busy", one(OF_SOUTH)))
    said = "the primary is now south at epoch 4, without an end"
    assert world.run() == (Outcome.PROMOTED, said)
    assert (world.promoted, world.waited_s) == ([4], 3.0)


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (one(OF_NORTH), "the primary is now north at epoch 3, without an end"),
        (TWO, "2 claim it"),
        ("labels ended with 1: busy", "who is the primary now is not known: labels ended with 1: busy"),
        (one(Claim("billing", "south", 3)), "the primary is now south at epoch 3, without an end"),
    ],
)
def test_it_has_failed_when_the_claims_do_not_say_so_within_a_minute(
    after: Standing | str, words: str
) -> None:
    world = World(after=(after,))
    assert world.run() == (Outcome.FAILED, f"not so 60 s after the command was done: {words}")
    assert world.waited_s == 60


def test_a_claim_without_an_epoch_will_do() -> None:
    assert World(after=(one(Claim("billing", "south-all")),)).run()[0] is Outcome.PROMOTED


def test_a_command_that_fails_has_failed_whatever_the_claims_say_then() -> None:
    world = World(fails="labels ended with 1: lost the race")
    said = "labels ended with 1: lost the race; the primary is now south at epoch 4, without an end"
    assert world.run() == (Outcome.FAILED, said)
    assert world.waited_s == 0


def test_a_person_and_a_script_are_told_the_same() -> None:
    preconditions = (
        Precondition(Name.LABEL, True, "north"),
        Precondition(Name.INPUT_LAG, False, "at most 9"),
        Precondition(Name.HEADROOM, None, "nobody said"),
    )
    found = Promoted(Promotion("billing", PAIR, 4, preconditions), Outcome.REFUSED, "input_lag: not so")
    assert list(promoted_lines(found, ["headroom"])) == [
        "label: HOLDS: north",
        "input_lag: DOES NOT HOLD: at most 9",
        "headroom: NOBODY KNOWS, and all the same: nobody said",
        "billing: north-all to south-all: REFUSED: input_lag: not so",
    ]
    assert promoted_document(found, ["headroom"], "ada") == {
        "service": "billing",
        "from": "north-all",
        "to": "south-all",
        "epoch": 4,
        "author": "ada",
        "despite": ["headroom"],
        "allowed": False,
        "outcome": "REFUSED",
        "words": "input_lag: not so",
        "preconditions": [
            {"name": "label", "holds": True, "words": "north"},
            {"name": "input_lag", "holds": False, "words": "at most 9"},
            {"name": "headroom", "holds": None, "words": "nobody said"},
        ],
    }
