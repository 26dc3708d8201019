"""`fleetgauge backtest`. Spark is imported when it runs, not before."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

import click

from fleetgauge_core.detection import (
    BURNS,
    Episode,
    Finding,
    episodes,
)
from fleetgauge_core.runtime.cli import (
    InputError,
    Instant,
    console,
    print_json,
)
from fleetgauge_pipelines.jobs.cli import config_option, fleet_of, lake_option, reading


class Verdict(StrEnum):
    """What is now beside what was then."""

    SAME = "same"
    NEW = "new"
    """Nobody was told of it."""
    GONE = "gone"
    """Somebody was, and nobody would be now."""


@click.command(epilog="Example: fleetgauge backtest --from 2026-03-02T00:00:00Z --to 2026-03-09T00:00:00Z")
@click.option("--from", "since", type=Instant(), required=True, help="The first moment that is judged.")
@click.option("--to", "until", type=Instant(), required=True, help="The first that is not.")
@config_option
@lake_option
@click.option("--json", "as_json", is_flag=True, help="Answer on stdout as JSON.")
def backtest(since: datetime, until: datetime, config: Path, location: str | None, as_json: bool) -> None:
    """Judge the budgets of the past by the objectives and windows of a fleet file: who would be paged?

    Beside it stands what the watch said then. Try new objectives on a copy of the file; for what brokers
    were named for, there is `fleetgauge replay run`.
    """
    fleet = fleet_of(config)
    if until <= since:
        raise InputError(f"--to {until:%FT%TZ} is not after --from {since:%FT%TZ}")
    with reading(location or fleet.lake) as (_, lake):
        from fleetgauge_pipelines.jobs.backtest import findings_now, findings_then

        if not lake.is_there:
            raise InputError(f"{location or fleet.lake}: no lake; `fleetgauge stream` or `backfill` makes it")
        now = of_budgets(findings_now(lake, fleet, since, until))
        then = of_budgets(findings_then(lake, since, until))
    told = list(compared(now, then))
    for verdict, one in told:
        ends = f"{one.cleared_at:%FT%TZ}" if one.cleared_at else "not within it"
        console.print(
            f"{verdict}: {one.kind} of {one.subject.cluster_id}, {one.named_at:%FT%TZ} to {ends}",
            markup=False,
            soft_wrap=True,
        )
    console.print(f"{len(now)} now, {len(then)} then")
    if as_json:
        print_json([_document(*pair) for pair in told])


def of_budgets(findings: Iterable[Finding]) -> list[Episode]:
    """What was found of brokers and clusters left out."""
    return episodes(one for one in findings if one.subject.chain in BURNS)


def compared(now: Sequence[Episode], then: Sequence[Episode]) -> Iterator[tuple[Verdict, Episode]]:
    """In the order in which they began."""
    pairs = [(Verdict.SAME if one in then else Verdict.NEW, one) for one in now]
    pairs += [(Verdict.GONE, one) for one in then if one not in now]
    yield from sorted(pairs, key=lambda pair: (pair[1].named_at, pair[1].subject))


def _document(verdict: Verdict, one: Episode) -> dict[str, Any]:
    return {
        "cluster": one.subject.cluster_id,
        "kind": one.kind,
        "verdict": verdict,
        "from": one.named_at.isoformat(),
        "to": one.cleared_at.isoformat() if one.cleared_at else None,
    }
