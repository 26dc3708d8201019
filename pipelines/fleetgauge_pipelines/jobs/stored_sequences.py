"""The highest sequence in bronze of each run and day, which tells new records without reading bronze.

A run numbers its records upwards, so a record with a higher sequence is new. Only those that come again or
late have to be looked up.
"""

from collections.abc import Sequence
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fleetgauge_core.tables import PROBE_MINUTES
from fleetgauge_pipelines.io.lake import Lake
from fleetgauge_pipelines.transforms.lists import Flags

#: Days that are remembered; the sequences of any other day are read again.
_MOST_DAYS = 8
_NONE_STORED = -1


class StoredSequences:
    """Highest sequences, read once for each run and day, and updated as records are stored."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._highest: dict[date, dict[str, int]] = {}

    def may_be_stored(self, keys: pa.Table, days: Sequence[date]) -> Flags:
        """Return which records may be stored in some days; ``keys`` has run_id and sequence."""
        runs = keys["run_id"].combine_chunks().dictionary_encode()
        names = runs.dictionary.to_pylist()
        self._read_unread(names, days)
        highest = [max((self._highest[day][name] for day in days), default=_NONE_STORED) for name in names]
        flags: Flags = np.asarray(keys["sequence"]) <= np.array(highest, np.int64)[np.asarray(runs.indices)]
        return flags

    def add(self, day: date, keys: pa.Table) -> None:
        """Take over that records of a day are about to be stored; call it before the commit."""
        of_day = self._highest.setdefault(day, {})
        highest = keys.select(["run_id", "sequence"]).group_by("run_id").aggregate([("sequence", "max")])
        for row in highest.to_pylist():
            if row["run_id"] in of_day:
                of_day[row["run_id"]] = max(of_day[row["run_id"]], row["sequence_max"])
        for oldest in sorted(self._highest)[:-_MOST_DAYS]:
            del self._highest[oldest]

    def _read_unread(self, runs: Sequence[str], days: Sequence[date]) -> None:
        unread: dict[date, set[str]] = {}
        for day in days:
            if of_day := set(runs) - self._highest.setdefault(day, {}).keys():
                unread[day] = of_day
        if not unread:
            return
        of_runs = pc.field("run_id").isin(pa.array(sorted(set().union(*unread.values())), pa.string()))
        stored = self._lake.list_files(PROBE_MINUTES, unread).read(("run_id", "sequence", "day"), of_runs)
        for day, of_day in unread.items():
            self._highest[day] |= dict.fromkeys(of_day, _NONE_STORED)
        for row in stored.group_by(["run_id", "day"]).aggregate([("sequence", "max")]).to_pylist():
            of_stored = self._highest[row["day"]]
            of_stored[row["run_id"]] = max(of_stored[row["run_id"]], row["sequence_max"])
