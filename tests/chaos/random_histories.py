"""Checks the mapping of offsets between regions on simulated mirrors that know where every message is.

    python -m tests.chaos.random_histories --histories 100000 --seed 1

Prints one JSON value: how many histories have which events, how many violate the mapping's guarantees, and
how many messages are read again by each rule, by MirrorMaker 2 from the same offset syncs, and at least.
Exits with 0 iff there is no violation. `--untold` measures how often there would be one if mirrors
restarted without any sign of it; no result is expected of that.
"""

import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from statistics import mean, median
from typing import Any

import click

from tests.oracle.random_mirrors import simulate_mirroring
from tests.unit.operations.recovery.mapping_cases import (
    RULES,
    MappingCase,
    build_case,
    find_violations,
    map_by_mirror_maker,
    sample_positions,
)

EXAMPLES = 20
PROGRESS_EVERY = 5_000


class Tally:
    """Counts of the histories and positions so far."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self.positions: Counter[str] = Counter()
        self.violations: Counter[str] = Counter()
        self.examples: list[str] = []
        self.read_again: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))

    def add(self, case: MappingCase) -> None:
        """Count a history's events, violations, and the records that are read again."""
        traits = case.mirroring.traits
        self.kinds.update(traits or {"nothing"})
        violations = list(find_violations(case))
        self.violations.update(traits if violations else ())
        self.violations["worlds"] += bool(violations)
        self.violations["lose"] += bool(violations) and loses_messages(case)
        self.examples += violations[: EXAMPLES - len(self.examples)]
        for position in sample_positions(case.mirroring):
            self._add_position(case, position)

    def _add_position(self, case: MappingCase, position: int) -> None:
        """Count the records read again by each rule, if all rules can map the position."""
        mappings = {rule: case.map_position(position, rule) for rule in RULES}
        peer = map_by_mirror_maker(case, position)
        self.positions["all"] += 1
        self.positions["unbounded"] += mappings["watermark"].is_unbounded
        if peer is None or peer.is_unbounded or mappings["uber"].is_unbounded:
            return
        resumes = {name: mapping.resume for name, mapping in mappings.items()}
        resumes |= {"mirror_maker": peer.resume, "oracle": case.mirroring.first_unconsumed_offset(position)}
        idle = {"idle", "watermarks"} <= case.mirroring.traits
        for kind in ("all", "idle with watermarks") if idle else ("all",):
            for name, resume in resumes.items():
                self.read_again[kind][name].append(case.mirroring.count_duplicates(position, resume))

    def document(self) -> dict[str, Any]:
        return {
            "histories_with": dict(sorted(self.kinds.items())),
            "positions": self.positions["all"],
            "unbounded": self.positions["unbounded"],
            "violations": self.violations.pop("worlds", 0),
            "lose_messages": self.violations.pop("lose", 0),
            "violations_with": dict(self.violations),
            "examples": self.examples,
            "read_again": {
                kind: _summarize(counts_by_rule) for kind, counts_by_rule in self.read_again.items()
            },
        }


def loses_messages(case: MappingCase) -> bool:
    """Return whether by any rule some message is not read at all, not even as a later copy."""
    return any(
        case.map_position(position, rule).resume > case.mirroring.last_safe_offset(position)
        for rule in RULES
        for position in sample_positions(case.mirroring)
    )


def _summarize(counts_by_rule: Mapping[str, list[int]]) -> dict[str, Any]:
    return {
        rule: {"mean": round(mean(counts), 2), "median": median(counts), "of": len(counts)}
        for rule, counts in counts_by_rule.items()
    }


@click.command()
@click.option("--histories", default=100_000, show_default=True, type=click.IntRange(min=1))
@click.option(
    "--seed",
    default=1,
    show_default=True,
    help="Seed of the first history; the following histories have the next seeds.",
)
@click.option("--untold", "unsynced_restarts", is_flag=True, help="Add restarts without an offset sync.")
def main(histories: int, seed: int, unsynced_restarts: bool) -> None:
    started, tally = time.monotonic(), Tally()
    for number in range(histories):
        tally.add(build_case(simulate_mirroring(seed + number, unsynced_restarts)))
        if (number + 1) % PROGRESS_EVERY == 0:
            violations = tally.violations["worlds"]
            click.echo(f"{number + 1} of {histories}: {violations} violate the guarantees", err=True)
    report = {"histories": histories, "seed": seed, **tally.document()}
    print(json.dumps(report | {"seconds": round(time.monotonic() - started)}, indent=2))
    sys.exit(1 if report["violations"] and not unsynced_restarts else 0)


if __name__ == "__main__":
    main()
