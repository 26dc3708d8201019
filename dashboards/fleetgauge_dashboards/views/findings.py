"""What speaks against a failover and has not ended."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from fleetgauge_dashboards.reader.table import Row

#: Somebody is called for it at once.
PAGE = "page"


@dataclass(frozen=True, slots=True)
class OpenFinding:
    """``other_id`` is the other end of a mirror or a pair, or the one whose load is too much; or empty."""

    fingerprint: str
    since: datetime
    kind: str
    severity: str
    cluster_id: str
    other_id: str
    subject: str
    summary: str
    evidence: str

    @property
    def is_page(self) -> bool:
        return self.severity == PAGE


def open_findings(rows: Iterable[Row]) -> tuple[OpenFinding, ...]:
    """Pages first, then the oldest. One that was told again after it began is as old as it was."""
    begun: dict[str, Row] = {}
    last: dict[str, Row] = {}
    for row in sorted(rows, key=lambda one: one["at"]):
        if row["opens"]:
            begun.setdefault(row["fingerprint"], row)
            last[row["fingerprint"]] = row
        else:
            begun.pop(row["fingerprint"], None)
    found = (_finding(last[fingerprint], row["at"]) for fingerprint, row in begun.items())
    return tuple(sorted(found, key=lambda one: (not one.is_page, one.since, one.fingerprint)))


def _finding(row: Row, since: datetime) -> OpenFinding:
    return OpenFinding(
        row["fingerprint"],
        since.astimezone(UTC),
        row["kind"] or "",
        row["severity"] or "",
        row["cluster_id"] or "",
        row["other_id"] or "",
        row["subject"] or "",
        row["summary"] or "",
        row["evidence"] or "",
    )
