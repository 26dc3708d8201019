"""Output of `fleetgauge recover promote`: text lines, a JSON document, and a row of ops/actions."""

import json
from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any

from fleetgauge_core.tables import ActionKind
from fleetgauge_operations.recovery.primaries.promotion_executor import PromotionResult

_HOLDS = {True: "MET", False: "NOT MET", None: "UNKNOWN"}


def format_promotion(result: PromotionResult, despite: Collection[str]) -> Iterator[str]:
    """Yield a line per precondition, and one with the outcome."""
    plan = result.plan
    for precondition in plan.preconditions:
        is_overridden = not precondition.holds and precondition.name in despite
        override = ", overridden by --despite" if is_overridden else ""
        yield f"{precondition.name}: {_HOLDS[precondition.holds]}{override}: {precondition.explanation}"
    pair = plan.pair
    yield f"{plan.service}: {pair.active} to {pair.passive}: {result.outcome}: {result.message}"


def promotion_document(result: PromotionResult, despite: Collection[str], author: str) -> dict[str, Any]:
    """Return the result of a promotion as a JSON document."""
    plan = result.plan
    return {
        "service": plan.service,
        "from": plan.pair.active,
        "to": plan.pair.passive,
        "epoch": plan.epoch,
        "author": author,
        "despite": sorted(set(despite)),
        "allowed": plan.is_allowed(despite),
        "outcome": result.outcome.value,
        "words": result.message,
        "preconditions": [
            {
                "name": precondition.name.value,
                "holds": precondition.holds,
                "words": precondition.explanation,
            }
            for precondition in plan.preconditions
        ],
    }


def promotion_row(
    result: PromotionResult,
    despite: Collection[str],
    author: str,
    action_id: str,
    started: datetime,
    ended: datetime,
) -> dict[str, Any]:
    """Return an attempted promotion as a row of ops/actions; its cluster is the one to be promoted."""
    document = promotion_document(result, despite, author)
    keys = ("service", "from", "to", "epoch", "despite", "preconditions")
    detail = {key: document[key] for key in keys}
    return {
        "action_id": action_id,
        "kind": ActionKind.PROMOTE.value,
        "cluster_id": result.plan.pair.passive,
        "broker_id": None,
        "starts": started,
        "ends": ended,
        "reason": f"{result.plan.service}: {result.outcome}: {result.message}",
        "author": author,
        "detail": json.dumps(detail),
    }
