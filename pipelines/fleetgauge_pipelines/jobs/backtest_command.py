"""What `fleetgauge backtest` does. Spark is imported after the fleet file was read."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from fleetgauge_core.detection import (
    BURN_CONDITIONS,
    Finding,
    FindingEpisode,
    build_episodes,
)
from fleetgauge_core.fleet import load_fleet
from fleetgauge_core.lake.table_store import TableStore
from fleetgauge_core.runtime.cli import InputError, print_json
from fleetgauge_core.runtime.console import console
from fleetgauge_core.slo.change_causes import RecordedChange, Segments, list_change_windows
from fleetgauge_core.tables import CHANGES
from fleetgauge_pipelines.jobs.lake_session import open_lake_for_reading

#: An alert is opened up to an hour after what burned the budget, by its longer window.
_BEFORE_ALERT = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class _ChangeWindow:
    """When a change may have had an effect on a cluster."""

    cluster_id: str
    first: datetime
    end: datetime
    change: RecordedChange


class BacktestVerdict(StrEnum):
    """How a recomputed budget alert compares with the alerts that were sent at the time."""

    SAME = "same"
    NEW = "new"
    """It was not sent at the time."""
    GONE = "gone"
    """It was sent at the time, and would not be sent now."""


def recompute_alerts(
    since: datetime, until: datetime, config: Path, location: str | None, as_json: bool
) -> None:
    """Print the burn alerts of a past period with the fleet file's objectives beside those sent at the time.

    Raises: InputError for an empty period or a missing lake.
    """
    fleet = load_fleet(config)
    if until <= since:
        raise InputError(f"--to {until:%FT%TZ} is not after --from {since:%FT%TZ}")
    with open_lake_for_reading(location or fleet.lake) as (_, lake):
        from fleetgauge_pipelines.jobs.annotations import read_latest_changes
        from fleetgauge_pipelines.jobs.backtest import read_recorded_findings, recompute_findings

        if not lake.exists:
            raise InputError(
                f"{location or fleet.lake}: no lake found; create it with `fleetgauge stream` or `backfill`"
            )
        recomputed = select_budget_episodes(recompute_findings(lake, fleet, since, until))
        recorded = select_budget_episodes(read_recorded_findings(lake, since, until))
        # A lake of an earlier version has no such table yet.
        changes = read_latest_changes(TableStore(lake.location, CHANGES, create=True))
    segments = {cluster.id: cluster.segments for cluster in fleet.clusters}
    windows = [window for change in changes for window in _list_windows(change, segments)]
    comparison = list(compare_episodes(recomputed, recorded))
    for verdict, episode in comparison:
        ends = f"{episode.cleared_at:%FT%TZ}" if episode.cleared_at else "the end or later"
        console.print(
            f"{verdict}: {episode.kind} of {episode.subject.cluster_id}, "
            f"{episode.opened_at:%FT%TZ} to {ends}",
            markup=False,
            soft_wrap=True,
        )
    console.print(f"{len(recomputed)} alerts recomputed, {len(recorded)} recorded at the time")
    if as_json:
        print_json(
            [_document(verdict, episode, _select_before(episode, windows)) for verdict, episode in comparison]
        )


def select_budget_episodes(findings: Iterable[Finding]) -> list[FindingEpisode]:
    """Return the episodes of burn alerts, without findings about brokers and clusters."""
    return build_episodes(finding for finding in findings if finding.subject.condition in BURN_CONDITIONS)


def compare_episodes(
    recomputed: Sequence[FindingEpisode], recorded: Sequence[FindingEpisode]
) -> Iterator[tuple[BacktestVerdict, FindingEpisode]]:
    """Yield every episode of the two with its verdict, in the order in which they began."""
    pairs = [
        (BacktestVerdict.SAME if episode in recorded else BacktestVerdict.NEW, episode)
        for episode in recomputed
    ]
    pairs += [(BacktestVerdict.GONE, episode) for episode in recorded if episode not in recomputed]
    yield from sorted(pairs, key=lambda pair: (pair[1].opened_at, pair[1].subject))


def _list_windows(change: RecordedChange, segments: Mapping[str, Segments]) -> Iterator[_ChangeWindow]:
    for cluster_id, first, end in list_change_windows(change, segments):
        yield _ChangeWindow(cluster_id, first, end, change)


def _select_before(episode: FindingEpisode, windows: Iterable[_ChangeWindow]) -> list[RecordedChange]:
    """Return the changes of an alert's cluster in the hour before it was opened."""
    return [
        window.change
        for window in windows
        if window.cluster_id == episode.subject.cluster_id
        and window.first <= episode.opened_at
        and window.end > episode.opened_at - _BEFORE_ALERT
    ]


def _document(
    verdict: BacktestVerdict, episode: FindingEpisode, changes: Sequence[RecordedChange]
) -> dict[str, Any]:
    return {
        "cluster": episode.subject.cluster_id,
        "kind": episode.kind,
        "verdict": verdict,
        "from": episode.opened_at.isoformat(),
        "to": episode.cleared_at.isoformat() if episode.cleared_at else None,
        "changes": [
            {"change_id": change.change_id, "kind": change.kind, "broker": change.broker_id}
            for change in changes
        ],
    }
