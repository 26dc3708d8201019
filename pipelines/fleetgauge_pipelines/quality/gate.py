"""The quality gate: great-expectations validates a suite on a few rows of aggregates."""

import importlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

#: Folder of the suites, each an ExpectationSuite in great-expectations' own JSON.
SUITES = Path(__file__).with_name("suites")
BATCH_SUITE_FILE = SUITES / "batch.json"
GOLD_SUITE_FILE = SUITES / "gold.json"

#: Aggregates by name; None where there was nothing to aggregate.
QualityFacts = Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class QualityVerdict:
    """Whether an expectation was met; ``observed`` has the evaluated values as JSON."""

    expectation: str
    success: bool
    observed: str


@dataclass(frozen=True, slots=True)
class ExpectationResult:
    """An expectation validated on several rows: its columns, and the positions of the failing rows."""

    expectation: str
    columns: tuple[str, ...]
    failed_rows: frozenset[int]

    def verdict_for_row(self, position: int, facts: QualityFacts) -> QualityVerdict:
        """Return the verdict on the row at a position, which holds ``facts``."""
        observed = {column: facts.get(column) for column in self.columns}
        return QualityVerdict(self.expectation, position not in self.failed_rows, json.dumps(observed))


def load_great_expectations() -> Any:
    """Import great-expectations, which takes seconds, and return it."""
    # It reads the variable when it is imported.
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    return importlib.import_module("great_expectations")


class QualityGate:
    """A suite of expectations, read once and validated as often as needed."""

    def __init__(self, suite: Path) -> None:
        gx = load_great_expectations()
        from great_expectations.data_context.types.base import ProgressBarsConfig

        context = gx.get_context(mode="ephemeral")
        context.variables.progress_bars = ProgressBarsConfig(globally=False)
        source = context.data_sources.add_pandas("rows")
        self._batches = source.add_dataframe_asset("facts").add_batch_definition_whole_dataframe("whole")
        document = json.loads(suite.read_text(encoding="utf-8"))
        self._suite = context.suites.add(gx.ExpectationSuite(**document))

    def judge(self, rows: Sequence[QualityFacts]) -> tuple[ExpectationResult, ...]:
        """Validate rows of aggregates and return a result for each expectation; None meets every bound."""
        frame = pd.DataFrame([dict(row) for row in rows], dtype="float64")
        batch = self._batches.get_batch(batch_parameters={"dataframe": frame})
        results = batch.validate(self._suite, result_format="COMPLETE").results
        return tuple(_to_expectation_result(result, len(rows)) for result in results)


def _to_expectation_result(result: Any, rows: int) -> ExpectationResult:
    settings = result.expectation_config.kwargs
    columns = tuple(settings[name] for name in ("column", "column_A", "column_B") if name in settings)
    name = f"{result.expectation_config.type}({', '.join(columns)})"
    if result.success:
        return ExpectationResult(name, columns, frozenset())
    # An expectation may fail without naming a row, as when its column is missing: then every row fails it.
    return ExpectationResult(
        name, columns, frozenset(result.result.get("unexpected_index_list") or range(rows))
    )
