"""Find the open recovery findings, which argue against a failover."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from fleetgauge_dashboards.reader.table import Row

#: The severity that pages the person on call.
PAGE = "page"


@dataclass(frozen=True, slots=True)
class OpenFinding:
    """A recovery finding that has not closed.

    ``other_id`` is the other cluster of a mirror or a pair, or the cluster whose load is too much; else
    empty.
    """

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
        """Return whether the finding pages the person on call."""
        return self.severity == PAGE


def fold_open_findings(rows: Iterable[Row]) -> tuple[OpenFinding, ...]:
    """Return the findings that are open, pages first, then the oldest.

    A finding that is reported again while open keeps its first time.
    """
    opening_rows: dict[str, Row] = {}
    latest_rows: dict[str, Row] = {}
    for row in sorted(rows, key=lambda row: row["at"]):
        if row["opens"]:
            opening_rows.setdefault(row["fingerprint"], row)
            latest_rows[row["fingerprint"]] = row
        else:
            opening_rows.pop(row["fingerprint"], None)
    findings = (_finding(latest_rows[fingerprint], row["at"]) for fingerprint, row in opening_rows.items())
    return tuple(
        sorted(findings, key=lambda finding: (not finding.is_page, finding.since, finding.fingerprint))
    )


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
