"""The quality gate of gold: weeks that fail an expectation are held back until they meet it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from fleetgauge_core.tables import QUALITY
from fleetgauge_core.tables.row_diff import RowMapping
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.quality.gate import ExpectationResult, QualityFacts, QualityGate, QualityVerdict

SUITE = "gold"

WeekExpectation = tuple[date, str]


@dataclass(frozen=True, slots=True)
class WeekVerdicts:
    """The result of a suite for several weeks, each judged by its facts."""

    facts: Mapping[date, QualityFacts] = field(default_factory=dict)
    results: tuple[ExpectationResult, ...] = ()

    @property
    def held_back(self) -> tuple[date, ...]:
        """Return the weeks that must not be written, oldest first."""
        return tuple(sorted({week for (week, _), verdict in self.iterate_weeks() if not verdict.success}))

    @property
    def verdicts(self) -> tuple[QualityVerdict, ...]:
        """Return a verdict on each expectation over all weeks."""
        weeks = list(self.facts)
        return tuple(
            QualityVerdict(
                result.expectation,
                not result.failed_rows,
                json.dumps(
                    {
                        "weeks": len(weeks),
                        "broken": [str(weeks[position]) for position in sorted(result.failed_rows)],
                    }
                ),
            )
            for result in self.results
        )

    def iterate_weeks(self) -> Iterator[tuple[WeekExpectation, QualityVerdict]]:
        """Yield the verdict on each expectation for each week."""
        for result in self.results:
            for position, (week, facts) in enumerate(self.facts.items()):
                yield (week, result.expectation), result.verdict_for_row(position, facts)


class GoldGate:
    """Judges weeks by a suite and remembers which weeks are held back.

    ops/quality has a row for each expectation that a week failed, with whether the week still fails it.
    """

    def __init__(self, lake: Lake, suite: Path) -> None:
        self._lake = lake
        self._suite = suite
        self._stored: dict[WeekExpectation, RowMapping] = {}

    def open(self) -> None:
        """Read which weeks are held back."""
        week_rows = (pc.field("suite") == SUITE) & pc.field("week").is_valid()
        rows = self._lake.table_store(QUALITY).rows(week_rows)
        self._stored = {(row["week"], row["expectation"]): row for row in rows}

    @property
    def held_back(self) -> frozenset[date]:
        """Return the weeks that fail an expectation."""
        return frozenset(week for (week, _), row in self._stored.items() if not row["success"])

    def warm_up(self) -> None:
        """Load the suite before it is needed."""
        _ = self._gate

    def judge(self, facts: Mapping[date, QualityFacts]) -> WeekVerdicts:
        """Validate weeks by their facts, and return the verdicts."""
        return WeekVerdicts(facts, self._gate.judge(list(facts.values())))

    def find_state_changes(
        self, verdicts: WeekVerdicts, batch: str, clock: datetime
    ) -> tuple[list[RowMapping], list[RowMapping]]:
        """Return rows for expectations that a week newly fails or meets again, and the rows they replace.

        The gate takes the returned state over, so each change is returned once.
        """
        current = dict(verdicts.iterate_weeks())
        # An expectation that was removed from the suite no longer holds a week back.
        removed = [key for key in self._stored if key[0] in verdicts.facts and key not in current]
        current |= {key: QualityVerdict(key[1], True, "{}") for key in removed}
        changed = {
            key: _row(key, verdict, batch, clock)
            for key, verdict in current.items()
            if verdict.success != (key not in self._stored or self._stored[key]["success"])
        }
        replaced = [self._stored[key] for key in changed if key in self._stored]
        self._stored |= changed
        return list(changed.values()), replaced

    @cached_property
    def _gate(self) -> QualityGate:
        # Created for the first weeks: great-expectations takes seconds to import.
        return QualityGate(self._suite)


def _row(key: WeekExpectation, verdict: QualityVerdict, batch: str, clock: datetime) -> dict[str, Any]:
    week, expectation = key
    check_id = f"{SUITE}/{week}/{expectation}"
    values = (check_id, clock, batch, SUITE, expectation, verdict.success, verdict.observed, week)
    return dict(zip(QUALITY.column_names, values, strict=True))
