"""A cluster-week with its raw and its corrected values."""

from fleetgauge_core.slo.corrected_week import CORRECTED_COLUMNS, add_raw_columns

RAW = {name: number + 1.0 for number, name in enumerate(CORRECTED_COLUMNS)} | {"coverage": 0.9}
TWINS = {f"{name}_raw": RAW[name] for name in CORRECTED_COLUMNS}


def test_without_corrections_both_columns_have_the_raw_value() -> None:
    assert add_raw_columns(RAW, None, "") == RAW | TWINS | {"corrections": ""}


def test_the_corrected_value_replaces_the_raw_one_which_moves_to_its_twin() -> None:
    corrected = dict.fromkeys(CORRECTED_COLUMNS, -1.0)
    assert add_raw_columns(RAW, corrected, "c1,c2") == RAW | corrected | TWINS | {"corrections": "c1,c2"}


def test_a_fully_excluded_week_has_no_levels_and_no_budget_left() -> None:
    row = add_raw_columns(RAW, None, "c1")
    assert {name for name in CORRECTED_COLUMNS if row[name] is None} == {
        "latency_p99_us",
        "latency_p99_censored_us",
        "availability_p99",
        "availability_ratio",
        "latency_budget_left_minutes",
    }
    assert row["minutes_expected"] == row["bad_minutes"] == row["availability_spent_minutes"] == 0
    assert row["latency_objective_us"] == RAW["latency_objective_us"]
    assert row | TWINS == row
