from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from fleetgauge_operations.mitigation.standstill import StandStill
from fleetgauge_operations.notify.notification import Bulletin
from tests.unit.operations.mitigation.world import NOON

LATER = NOON + timedelta(minutes=5)


class Desk:
    """``out``: whom it does not reach."""

    def __init__(self) -> None:
        self.out: set[str] = set()
        self.heard: list[tuple[str, bool, str]] = []

    def tell(self, bulletin: Bulletin, but: Collection[str]) -> Sequence[str]:
        reached = sorted({"pager", "channel"} - self.out - set(but))
        self.heard += [(who, bulletin.opens, bulletin.bulletin_id) for who in reached]
        return reached

    def hears_of(self, still: StandStill, at: datetime = NOON) -> None:
        still.tell({"pager", "channel"}, self.tell, at)


def test_everybody_hears_once_that_it_stands_still_and_once_that_it_goes_on() -> None:
    still, desk = StandStill(), Desk()
    for _ in range(3):
        still.found("orders", "ops/actions cannot be read", NOON)
        desk.hears_of(still)
    assert [(who, opens) for who, opens, _ in desk.heard] == [("channel", True), ("pager", True)]
    for _ in range(3):
        still.over("orders", LATER)
        desk.hears_of(still)
    assert [(who, opens) for who, opens, _ in desk.heard[2:]] == [("channel", False), ("pager", False)]
    assert "orders" not in still


def test_whom_it_did_not_reach_hears_it_later_under_the_same_id() -> None:
    still, desk = StandStill(), Desk()
    still.found("orders", "ops/actions cannot be read", NOON)
    desk.out = {"pager"}
    desk.hears_of(still)
    desk.out = set()
    desk.hears_of(still)
    assert [who for who, *_ in desk.heard] == ["channel"]
    desk.hears_of(still, LATER)
    assert [who for who, *_ in desk.heard] == ["channel", "pager"]
    assert len({bulletin_id for *_, bulletin_id in desk.heard}) == 1
    still.over("orders", LATER)
    desk.out = {"channel", "pager"}
    desk.hears_of(still, LATER)
    assert "orders" in still
    desk.hears_of(still, LATER + timedelta(days=2))
    assert "orders" not in still


def test_what_never_stood_still_does_not_go_on() -> None:
    still, desk = StandStill(), Desk()
    still.over("orders", NOON)
    desk.hears_of(still)
    assert desk.heard == []
