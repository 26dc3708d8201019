"""`fleetgauge recover promote` in lines for a person, as JSON for a script, and as a row of ops/actions."""

import json
from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any

from fleetgauge_operations.recovery.primaries.promotion_executor import Promoted

_HOLDS = {True: "HOLDS", False: "DOES NOT HOLD", None: "NOBODY KNOWS"}


def promoted_lines(found: Promoted, despite: Collection[str]) -> Iterator[str]:
    """A line a precondition, and what came of it."""
    promotion = found.promotion
    for one in promotion.preconditions:
        all_the_same = ", and all the same" if not one.holds and one.name in despite else ""
        yield f"{one.name}: {_HOLDS[one.holds]}{all_the_same}: {one.words}"
    pair = promotion.pair
    yield f"{promotion.service}: {pair.active} to {pair.passive}: {found.outcome}: {found.words}"


def promoted_document(found: Promoted, despite: Collection[str], author: str) -> dict[str, Any]:
    promotion = found.promotion
    return {
        "service": promotion.service,
        "from": promotion.pair.active,
        "to": promotion.pair.passive,
        "epoch": promotion.epoch,
        "author": author,
        "despite": sorted(set(despite)),
        "allowed": promotion.is_allowed(despite),
        "outcome": found.outcome.value,
        "words": found.words,
        "preconditions": [
            {"name": one.name.value, "holds": one.holds, "words": one.words}
            for one in promotion.preconditions
        ],
    }


def promoted_row(
    found: Promoted, despite: Collection[str], author: str, action_id: str, began: datetime, ended: datetime
) -> dict[str, Any]:
    """Of one that was tried; of the cluster that was to be the primary."""
    document = promoted_document(found, despite, author)
    about = {name: document[name] for name in ("service", "from", "to", "epoch", "despite", "preconditions")}
    return {
        "action_id": action_id,
        "kind": "promote",
        "cluster_id": found.promotion.pair.passive,
        "broker_id": None,
        "starts": began,
        "ends": ended,
        "reason": f"{found.promotion.service}: {found.outcome}: {found.words}",
        "author": author,
        "detail": json.dumps(about),
    }
