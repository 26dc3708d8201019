"""Nearest-rank quantiles as column expressions: the rule of fleetgauge_core.slo.quantile."""

from pyspark.sql import Column
from pyspark.sql import functions as F


def rank(percent: int, count: Column) -> Column:
    """Return the 1-based nearest rank of a percentile of ``count`` values, as a long.

    A record may claim any count, so the product must not overflow an int.
    """
    return F.call_function("div", count.cast("long") * percent + 99, F.lit(100))


def quantile(percent: int, ascending: Column) -> Column:
    """Return a percentile of an ascending array; NULL of an empty one."""
    return _get_or_null(ascending, rank(percent, F.size(ascending)) - 1)


def quantile_from_bad_side(percent: int, ascending: Column) -> Column:
    """Return a percentile from the low end, where low values are bad; NULL of an empty array."""
    count = F.size(ascending)
    return _get_or_null(ascending, count - rank(percent, count))


def censored_quantile(percent: int, ascending: Column, attempted: Column, deadline: Column) -> Column:
    """Return a percentile of ``attempted`` values, of which the missing ones count at the deadline."""
    count = F.size(ascending)
    failures = attempted - count
    position = rank(percent, attempted)
    # How many values are within the deadline is computed only where the largest value is beyond it, which is
    # rare. It is computed by sorting, because a lambda keeps Spark from generating code for the expressions
    # beside it.
    sentinel = deadline + 1
    below = F.array_position(F.sort_array(F.array_append(ascending, sentinel)), sentinel) - 1
    within = F.when(F.get(ascending, count - 1) <= deadline, count).otherwise(below)
    return (
        F.when(position <= within, _get_or_null(ascending, position - 1))
        .when(position <= within + failures, deadline)
        .otherwise(_get_or_null(ascending, position - 1 - failures))
    )


def sort_ascending(samples: Column) -> Column:
    """Return an array of numbers sorted in ascending order, without NULLs.

    ``array_sort`` compares by a lambda. ``sort_array`` is many times faster on plain numbers once Spark knows
    that the array has no NULL, which ``array_compact`` ensures.
    """
    return F.sort_array(F.array_compact(samples))


def pooled_quantile(percent: int, slowest: Column, count: Column) -> Column:
    """Return a percentile of ``count`` values from the largest of them.

    ``slowest`` is ascending and has at least the count - rank + 1 largest values.
    """
    return _get_or_null(slowest, F.size(slowest) - 1 - (count - rank(percent, count)))


def _get_or_null(values: Column, index: Column) -> Column:
    # get returns NULL for an index out of range, where element_at raises under ANSI mode.
    return F.get(values, index.cast("int"))
