"""Records that were lost before the pipeline could read them, from the checks of the suite `topics`."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

#: The suite whose checks fail for every loss; see fleetgauge_pipelines.jobs.lost_records.
SUITE = "topics"


@dataclass(frozen=True, slots=True)
class RecordLoss:
    """A loss: when it was noticed, what happened to the topic, and how many records are gone.

    ``is_exact``: the offsets tell the number; otherwise it is a lower bound. ``missing_minutes`` is how many
    of the minutes that agents have numbered the lake lacks, None until that has been looked up.
    """

    at: datetime
    detail: str
    records: int
    is_exact: bool
    missing_minutes: int | None


def parse_losses(checks: Iterable[Mapping[str, Any]]) -> tuple[RecordLoss, ...]:
    """Return the losses among rows of ops/quality, the newest first."""
    losses = (_parse_loss(check) for check in checks if check["suite"] == SUITE and not check["success"])
    return tuple(sorted(losses, key=lambda loss: loss.at, reverse=True))


def format_lost_records(losses: Iterable[RecordLoss]) -> str:
    """Return the number of records of all losses; it is a lower bound if one of them is."""
    all_losses = tuple(losses)
    total = sum(loss.records for loss in all_losses)
    return f"{total:,}" if all(loss.is_exact for loss in all_losses) else f"at least {total:,}"


def _parse_loss(check: Mapping[str, Any]) -> RecordLoss:
    observed = json.loads(check["observed"])
    return RecordLoss(
        check["at"].astimezone(UTC),
        observed["text"],
        observed["records"] or 0,
        bool(observed["exact"]),
        observed.get("sequences_missing"),
    )
