"""Records that are missing in the lake, and those that the stream has stored as lost."""

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from fleetgauge_core.tables import PROBE_MINUTES, QUALITY
from tests.chaos._running_fleet import Scene
from tests.chaos._streaming import Row, log_progress, rows
from tests.waiting import wait_until

#: Gaps before a run's newest minutes may still be filled by records on their way.
SETTLED_S = 240


def find_missing(records: Sequence[Row]) -> dict[str, list[int]]:
    """Return by run the numbers that are missing between its first and its last record."""
    numbers: dict[str, set[int]] = defaultdict(set)
    for record in records:
        numbers[record["run_id"]].add(record["sequence"])
    missing = {
        run: [number for before, after in pairwise(sorted(sequences)) for number in range(before + 1, after)]
        for run, sequences in numbers.items()
    }
    return {run: sequences for run, sequences in missing.items() if sequences}


def read_losses(scene: Scene) -> tuple[dict[str, list[int]], Counter[str]]:
    """Return the numbers of the records that are stored as lost by run, and the stored losses by topic."""
    numbers: dict[str, set[int]] = defaultdict(set)
    losses = [row for row in rows(scene.lake, QUALITY) if row["suite"] == "topics"]
    for row in losses:
        for run, spans in json.loads(row["observed"]).get("sequences", {}).items():
            for span in spans:
                first, last = map(int, span.split("-"))
                numbers[run] |= set(range(first, last + 1))
    stored = {run: sorted(sequences) for run, sequences in numbers.items()}
    return stored, Counter(row["expectation"] for row in losses)


def compare_losses(scene: Scene, before: Counter[str]) -> dict[str, Any]:
    """Wait until what is missing in the lake is what the stream has stored, and return both counts.

    ``before``: the losses by topic that were stored before.
    """

    def read_both() -> tuple[dict[str, list[int]], dict[str, list[int]]]:
        return find_missing(rows(scene.lake, PROBE_MINUTES, ["run_id", "sequence"])), read_losses(scene)[0]

    def is_equal() -> bool:
        missing, stored = read_both()
        return missing == stored

    try:
        wait_until(is_equal, SETTLED_S, "the losses to be stored", every_s=5)
    except TimeoutError as error:
        log_progress(str(error))
    missing, stored = read_both()
    return {
        "missing": sum(map(len, missing.values())),
        "stored": sum(map(len, stored.values())),
        "is_equal": missing == stored,
        "losses_by_topic": dict(read_losses(scene)[1] - before),
    }
