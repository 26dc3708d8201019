"""Nearest-rank quantiles as column expressions; the twin of fleetgauge_core.slo.quantile."""

from pyspark.sql import Column
from pyspark.sql import functions as F


def rank(a: int, n: Column) -> Column:
    """The 1-based rank of the a-th percentile of n values; a long, for records may claim any number."""
    return F.call_function("div", n.cast("long") * a + 99, F.lit(100))


def quantile(a: int, ascending: Column) -> Column:
    """The a-th percentile of an ascending array; NULL of an empty one.

    ``get`` and not ``element_at``: the latter raises under ANSI mode.
    """
    return _at(ascending, rank(a, F.size(ascending)) - 1)


def quantile_from_bad_side(a: int, ascending: Column) -> Column:
    """The a-th percentile counted from the low end; NULL of an empty array."""
    n = F.size(ascending)
    return _at(ascending, n - rank(a, n))


def censored_quantile(a: int, ascending: Column, attempted: Column, deadline: Column) -> Column:
    """The a-th percentile of ``attempted`` values, those that are missing counted at the deadline."""
    n = F.size(ascending)
    failures = attempted - n
    at = rank(a, attempted)
    # Looked for only where a success was slower than the deadline, which is rare; and by sorting, because a
    # lambda would keep Spark from compiling whatever is computed beside it.
    beyond = deadline + 1
    below = F.array_position(F.sort_array(F.array_append(ascending, beyond)), beyond) - 1
    within = F.when(F.get(ascending, n - 1) <= deadline, n).otherwise(below)
    return (
        F.when(at <= within, _at(ascending, at - 1))
        .when(at <= within + failures, deadline)
        .otherwise(_at(ascending, at - 1 - failures))
    )


def ascending(samples: Column) -> Column:
    """An array of numbers without NULLs, sorted.

    ``array_sort`` compares by a lambda. ``sort_array`` sorts plain numbers, many times faster, once it is
    told that there is no NULL among them; that is what ``array_compact`` is for.
    """
    return F.sort_array(F.array_compact(samples))


def pooled_quantile(a: int, slowest: Column, n: Column) -> Column:
    """The a-th percentile of n values, of which ``slowest``, ascending, has the n - rank + 1 last or more."""
    return _at(slowest, F.size(slowest) - 1 - (n - rank(a, n)))


def _at(values: Column, index: Column) -> Column:
    return F.get(values, index.cast("int"))
