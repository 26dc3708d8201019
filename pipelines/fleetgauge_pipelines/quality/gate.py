"""A suite of expectations, judged by great-expectations on a few rows of aggregates."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

#: great-expectations' own JSON, an ExpectationSuite a file.
SUITES = Path(__file__).with_name("suites")
BATCH = SUITES / "batch.json"
GOLD = SUITES / "gold.json"

#: Aggregates by name; one of nothing is None.
Facts = Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Verdict:
    """One expectation's outcome; ``observed`` is JSON."""

    expectation: str
    success: bool
    observed: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One expectation: the aggregates that it looks at, and the positions of the rows that break it."""

    expectation: str
    columns: tuple[str, ...]
    broken: frozenset[int]

    def verdict(self, position: int, facts: Facts) -> Verdict:
        """On the row at a position, which holds these facts."""
        observed = {column: facts.get(column) for column in self.columns}
        return Verdict(self.expectation, position not in self.broken, json.dumps(observed))


class Gate:
    """A suite, read once and validated as often as there is something to judge."""

    def __init__(self, suite: Path) -> None:
        # Read when the package is imported, which is therefore done here.
        os.environ["GX_ANALYTICS_ENABLED"] = "false"
        import great_expectations as gx
        from great_expectations.data_context.types.base import ProgressBarsConfig

        context = gx.get_context(mode="ephemeral")
        context.variables.progress_bars = ProgressBarsConfig(globally=False)
        source = context.data_sources.add_pandas("rows")
        self._batches = source.add_dataframe_asset("facts").add_batch_definition_whole_dataframe("whole")
        document = json.loads(suite.read_text(encoding="utf-8"))
        self._suite = context.suites.add(gx.ExpectationSuite(**document))

    def judge(self, rows: Sequence[Facts]) -> tuple[Finding, ...]:
        """One finding per expectation. An aggregate of nothing breaks no bound."""
        frame = pd.DataFrame([dict(row) for row in rows], dtype="float64")
        batch = self._batches.get_batch(batch_parameters={"dataframe": frame})
        results = batch.validate(self._suite, result_format="COMPLETE").results
        return tuple(_finding(result, len(rows)) for result in results)


def _finding(result: Any, rows: int) -> Finding:
    settings = result.expectation_config.kwargs
    columns = tuple(settings[name] for name in ("column", "column_A", "column_B") if name in settings)
    name = f"{result.expectation_config.type}({', '.join(columns)})"
    if result.success:
        return Finding(name, columns, frozenset())
    # One that fails without naming a row, as for a column that is not there, is broken by all.
    return Finding(name, columns, frozenset(result.result.get("unexpected_index_list") or range(rows)))
