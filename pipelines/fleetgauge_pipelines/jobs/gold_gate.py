"""Which weeks may be written, and which are held back until they may."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from fleetgauge_core.tables import QUALITY
from fleetgauge_core.tables.row_diff import Row
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.quality.gate import Facts, Finding, Gate, Verdict

SUITE = "gold"

Key = tuple[date, str]


@dataclass(frozen=True, slots=True)
class Judged:
    """What a suite says of weeks, each by its facts."""

    facts: Mapping[date, Facts] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    @property
    def held_back(self) -> tuple[date, ...]:
        """The weeks that must not be written, oldest first."""
        return tuple(sorted({week for (week, _), verdict in self.of_weeks() if not verdict.success}))

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """One per expectation, over all weeks."""
        weeks = list(self.facts)
        return tuple(
            Verdict(
                finding.expectation,
                not finding.broken,
                json.dumps(
                    {"weeks": len(weeks), "broken": [str(weeks[at]) for at in sorted(finding.broken)]}
                ),
            )
            for finding in self.findings
        )

    def of_weeks(self) -> Iterator[tuple[Key, Verdict]]:
        for finding in self.findings:
            for position, (week, facts) in enumerate(self.facts.items()):
                yield (week, finding.expectation), finding.verdict(position, facts)


class GoldGate:
    """Judges weeks by a suite and knows which ones are held back: ops/quality has a row
    for each expectation that a week broke, and it says whether the week still does."""

    def __init__(self, lake: Lake, suite: Path) -> None:
        self._lake = lake
        self._suite = suite
        self._known: dict[Key, Row] = {}

    def open(self) -> None:
        """Learn which weeks are held back."""
        of_weeks = (pc.field("suite") == SUITE) & pc.field("week").is_valid()
        found = self._lake.small(QUALITY).rows(of_weeks)
        self._known = {(row["week"], row["expectation"]): row for row in found}

    @property
    def held_back(self) -> frozenset[date]:
        return frozenset(week for (week, _), row in self._known.items() if not row["success"])

    def judge(self, facts: Mapping[date, Facts]) -> Judged:
        return Judged(facts, self._gate.judge(list(facts.values())))

    def news(self, judged: Judged, batch: str, clock: datetime) -> tuple[list[Row], list[Row]]:
        """The rows of expectations that a week began or ceased to break, and what they replace."""
        found = dict(judged.of_weeks())
        # An expectation that the suite no longer has holds nobody back.
        gone = [key for key in self._known if key[0] in judged.facts and key not in found]
        found |= {key: Verdict(key[1], True, "{}") for key in gone}
        news = {
            key: _row(key, verdict, batch, clock)
            for key, verdict in found.items()
            if verdict.success != (key not in self._known or self._known[key]["success"])
        }
        replaced = [self._known[key] for key in news if key in self._known]
        self._known |= news
        return list(news.values()), replaced

    @cached_property
    def _gate(self) -> Gate:
        """Made for the first weeks: great-expectations takes seconds to import."""
        return Gate(self._suite)


def _row(key: Key, verdict: Verdict, batch: str, clock: datetime) -> dict[str, Any]:
    week, expectation = key
    check_id = f"{SUITE}/{week}/{expectation}"
    values = (check_id, clock, batch, SUITE, expectation, verdict.success, verdict.observed, week)
    return dict(zip(QUALITY.names, values, strict=True))
