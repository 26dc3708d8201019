from fleetgauge_core.slo.corrected import CORRECTED, beside_raw

RAW = {name: number + 1.0 for number, name in enumerate(CORRECTED)} | {"coverage": 0.9}
TWINS = {f"{name}_raw": RAW[name] for name in CORRECTED}


def test_without_corrections_both_numbers_are_the_raw_one() -> None:
    assert beside_raw(RAW, None, "") == RAW | TWINS | {"corrections": ""}


def test_what_is_left_counts_and_the_raw_number_stays_beside_it() -> None:
    left = dict.fromkeys(CORRECTED, -1.0)
    assert beside_raw(RAW, left, "c1,c2") == RAW | left | TWINS | {"corrections": "c1,c2"}


def test_a_week_without_a_minute_left_has_neither_level_nor_budget_to_compare() -> None:
    row = beside_raw(RAW, None, "c1")
    assert {name for name in CORRECTED if row[name] is None} == {
        "latency_p99_us",
        "latency_p99_censored_us",
        "availability_p99",
        "availability_ratio",
        "latency_budget_left_minutes",
    }
    assert row["minutes_expected"] == row["bad_minutes"] == row["availability_spent_minutes"] == 0
    assert row["latency_objective_us"] == RAW["latency_objective_us"]
    assert row | TWINS == row
