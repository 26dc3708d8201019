"""How far mirrors were behind over a stretch of minutes, thinned by the worst of each step."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from fleetgauge_dashboards.links import MINUTE, Span, Window
from fleetgauge_dashboards.views.freshness import Age
from fleetgauge_dashboards.views.minutes import Grid, grid, on_grid, runs
from fleetgauge_dashboards.views.recovery_freshness import Told

_LEGIBLE = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class RpoLine:
    """One mirror's seconds behind, at most and as tracers say; None: nobody knows, or nothing was told."""

    source: str
    destination: str
    at_most: tuple[float | None, ...]
    estimate: tuple[float | None, ...]

    @property
    def name(self) -> str:
        return f"{self.source} to {self.destination}"

    @property
    def peak(self) -> float:
        return max((one for one in (*self.at_most, *self.estimate) if one is not None), default=0.0)


@dataclass(frozen=True, slots=True)
class Rpo:
    """All mirrors on one grid, by name, against what a week is held to."""

    grid: Grid
    lines: tuple[RpoLine, ...]
    objective_s: float | None

    @property
    def gaps(self) -> tuple[Span, ...]:
        """Where no mirror was known, from the first one on that was."""
        known = [
            any(line.at_most[step] is not None or line.estimate[step] is not None for line in self.lines)
            for step in range(self.grid.size)
        ]
        begun = known.index(True) if True in known else self.grid.size
        return runs(self.grid, [not one and step >= begun for step, one in enumerate(known)])


def rpo_span(window: Window, told: Told, now: datetime, first: datetime | None) -> Span:
    """The newest minutes. Where they are late the span ends now, so that the lateness shows as a gap.

    It begins no earlier than the ``first`` minute that is held, and is legible.
    """
    late = told.until is None or told.state is Age.STALE
    end = now.replace(second=0, microsecond=0) + MINUTE if late or told.until is None else told.until
    start = end - window.length
    return Span(start if first is None else max(start, min(first, end - _LEGIBLE)), end)


def rpo(rows: pa.Table, span: Span, objective_s: float | None) -> Rpo:
    """Of minutes that may be more than the span's."""
    steps = grid(span)
    worst = (
        on_grid(rows, steps)
        .group_by(["source", "destination", "step"])
        .aggregate([("behind_s_at_most", "max"), ("behind_s", "max")])
        .to_pylist()
    )
    found: dict[tuple[str, str], dict[int, dict[str, Any]]] = {}
    for row in worst:
        found.setdefault((row["source"], row["destination"]), {})[row["step"]] = row
    lines = tuple(
        RpoLine(
            *between,
            at_most=_by_step(found[between], steps, "behind_s_at_most_max"),
            estimate=_by_step(found[between], steps, "behind_s_max"),
        )
        for between in sorted(found)
    )
    return Rpo(steps, lines, objective_s)


def _by_step(by_step: dict[int, dict[str, Any]], steps: Grid, name: str) -> tuple[float | None, ...]:
    return tuple(by_step[step][name] if step in by_step else None for step in range(steps.size))
