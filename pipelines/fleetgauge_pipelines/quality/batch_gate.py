"""What must hold of every batch, judged by great-expectations on one row of aggregates."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

SUITE = "batch"

#: Aggregate to the bounds between which it must lie.
BOUNDS: Mapping[str, tuple[float | None, float | None]] = {
    "availability_min": (0, 1),
    "availability_max": (0, 1),
    "quantiles_out_of_order": (0, 0),
    "more_successes_than_attempts": (0, 0),
    "measured_without_attempts": (0, 0),
    "expected_minutes": (0, None),
}
#: Pairs of aggregates that must be equal: nothing is lost between a topic and the tables.
EQUAL = (("received", "accounted_for"),)


@dataclass(frozen=True, slots=True)
class Verdict:
    """One expectation's outcome; ``observed`` is JSON."""

    expectation: str
    success: bool
    observed: str


class BatchGate:
    """The suite, built once and validated per batch."""

    def __init__(self) -> None:
        # Read when the package is imported, which is therefore done here.
        os.environ["GX_ANALYTICS_ENABLED"] = "false"
        import great_expectations as gx
        from great_expectations import expectations as gxe
        from great_expectations.data_context.types.base import ProgressBarsConfig

        context = gx.get_context(mode="ephemeral")
        context.variables.progress_bars = ProgressBarsConfig(globally=False)
        source = context.data_sources.add_pandas("batches")
        self._batches = source.add_dataframe_asset("aggregates").add_batch_definition_whole_dataframe("whole")
        suite = context.suites.add(gx.ExpectationSuite(name=SUITE))
        for column, (low, high) in BOUNDS.items():
            suite.add_expectation(
                gxe.ExpectColumnValuesToBeBetween(column=column, min_value=low, max_value=high)
            )
        for one, other in EQUAL:
            suite.add_expectation(gxe.ExpectColumnPairValuesToBeEqual(column_A=one, column_B=other))
        self._suite = suite

    def judge(self, aggregates: Mapping[str, float | None]) -> tuple[Verdict, ...]:
        """One verdict per expectation. An aggregate of nothing (None) breaks no bound."""
        frame = pd.DataFrame([dict(aggregates)], dtype="float64")
        batch = self._batches.get_batch(batch_parameters={"dataframe": frame})
        results = batch.validate(self._suite).results
        return tuple(
            _verdict(result.expectation_config, bool(result.success), aggregates) for result in results
        )


def _verdict(config: Any, success: bool, aggregates: Mapping[str, float | None]) -> Verdict:
    settings = config.kwargs
    columns = [settings[name] for name in ("column", "column_A", "column_B") if name in settings]
    observed = {column: aggregates[column] for column in columns}
    return Verdict(f"{config.type}({', '.join(columns)})", success, json.dumps(observed))
