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
EVERY = 5_000


class Tally:
    """What has been found so far."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self.answers: Counter[str] = Counter()
        self.broken: Counter[str] = Counter()
        self.examples: list[str] = []
        self.again: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))

    def take(self, case: MappingCase) -> None:
        traits = case.mirroring.traits
        self.kinds.update(traits or {"nothing"})
        found = list(find_violations(case))
        self.broken.update(traits if found else ())
        self.broken["worlds"] += bool(found)
        self.broken["lose"] += bool(found) and loses(case)
        self.examples += found[: EXAMPLES - len(self.examples)]
        for position in sample_positions(case.mirroring):
            self._take(case, position)

    def _take(self, case: MappingCase, position: int) -> None:
        """Only where all have an answer can they be compared."""
        answers = {rule: case.map_position(position, rule) for rule in RULES}
        theirs = map_by_mirror_maker(case, position)
        self.answers["all"] += 1
        self.answers["unbounded"] += answers["watermark"].unbounded
        if theirs is None or theirs.unbounded or answers["uber"].unbounded:
            return
        resumes = {name: one.resume for name, one in answers.items()}
        resumes |= {"mirror_maker": theirs.resume, "oracle": case.mirroring.first_unconsumed_offset(position)}
        idle = {"idle", "watermarks"} <= case.mirroring.traits
        for kind in ("all", "idle with watermarks") if idle else ("all",):
            for name, resume in resumes.items():
                self.again[kind][name].append(case.mirroring.count_duplicates(position, resume))

    def document(self) -> dict[str, Any]:
        return {
            "histories_with": dict(sorted(self.kinds.items())),
            "positions": self.answers["all"],
            "unbounded": self.answers["unbounded"],
            "violations": self.broken.pop("worlds", 0),
            "lose_messages": self.broken.pop("lose", 0),
            "violations_with": dict(self.broken),
            "examples": self.examples,
            "read_again": {kind: _summed(of) for kind, of in self.again.items()},
        }


def loses(case: MappingCase) -> bool:
    """Whether by any rule some message is not read at all, not even as a later copy."""
    return any(
        case.map_position(position, rule).resume > case.mirroring.last_safe_offset(position)
        for rule in RULES
        for position in sample_positions(case.mirroring)
    )


def _summed(of: Mapping[str, list[int]]) -> dict[str, Any]:
    return {
        name: {"mean": round(mean(some), 2), "median": median(some), "of": len(some)}
        for name, some in of.items()
    }


@click.command()
@click.option("--histories", default=100_000, show_default=True, type=click.IntRange(min=1))
@click.option("--seed", default=1, show_default=True, help="Of the first; the others' follow.")
@click.option("--untold", "unsynced_restarts", is_flag=True, help="Add restarts without an offset sync.")
def main(histories: int, seed: int, unsynced_restarts: bool) -> None:
    started, tally = time.monotonic(), Tally()
    for number in range(histories):
        tally.take(build_case(simulate_mirroring(seed + number, unsynced_restarts)))
        if (number + 1) % EVERY == 0:
            click.echo(f"{number + 1} of {histories}: {tally.broken['worlds']} violated", err=True)
    report = {"histories": histories, "seed": seed, **tally.document()}
    print(json.dumps(report | {"seconds": round(time.monotonic() - started)}, indent=2))
    sys.exit(1 if report["violations"] and not unsynced_restarts else 0)


if __name__ == "__main__":
    main()
