"""A batch's result as lines for a person and as counts for `--json`."""

from typing import TYPE_CHECKING

from fleetgauge_core.runtime.console import console

if TYPE_CHECKING:
    from fleetgauge_pipelines.jobs.batch import BatchResult


def print_batch(batch_id: int, result: "BatchResult") -> None:
    """Print one line about a batch, and a second line when an expectation failed."""
    ingested = result.ingested
    failed = [verdict.expectation for verdict in result.verdicts if not verdict.success]
    console.print(
        f"batch {batch_id}: {ingested.received} records ({ingested.stored} new, "
        f"{ingested.replayed} replayed, {ingested.quarantined} quarantined), "
        f"{result.silver_rows_changed} silver and {result.gold_rows_changed} gold rows changed, "
        f"{result.seconds:.1f} s",
        soft_wrap=True,
    )
    if failed:
        text = _describe_gate_failure(failed, result)
        console.print(f"batch {batch_id}: {text}", style="red", soft_wrap=True)


def _describe_gate_failure(expectations: list[str], result: "BatchResult") -> str:
    failure = f"the quality gate failed: {', '.join(expectations)}"
    weeks = ", ".join(str(week) for week in result.weeks_held_back)
    return (
        f"{failure}; these weeks are held back and keep their last good values: {weeks}" if weeks else failure
    )


#: The keys of ``count_batch``, in order.
COUNT_NAMES = (
    "batches",
    "received",
    "stored",
    "replayed",
    "quarantined",
    "silver_rows_changed",
    "gold_rows_changed",
    "quality_failures",
)


def count_batch(result: "BatchResult") -> dict[str, int]:
    """Return what a batch did as numbers that add up over batches."""
    ingested = result.ingested
    return {
        "batches": 1,
        "received": ingested.received,
        "stored": ingested.stored,
        "replayed": ingested.replayed,
        "quarantined": ingested.quarantined,
        "silver_rows_changed": result.silver_rows_changed,
        "gold_rows_changed": result.gold_rows_changed,
        "quality_failures": sum(not verdict.success for verdict in result.verdicts),
    }
