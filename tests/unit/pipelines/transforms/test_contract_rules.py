"""What is cleared by columns breaks no rule, and the rules say of any value what they say of a record."""

from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from fleetgauge_core.contract import PROBE_MINUTE, RecordDecodeError
from fleetgauge_core.tables import PROBE_MINUTES, QUARANTINE_REASONS
from fleetgauge_core.tables.arrow_schema import arrow_schema
from fleetgauge_pipelines.transforms.avro import decode_plain
from fleetgauge_pipelines.transforms.contract_rules import ContractRules
from tests.spark.fuzz import CLOCK, CLUSTER, OLDEST, Fate, fate, values

RULES = ContractRules({CLUSTER}, CLOCK, OLDEST, None)


def decode(value: bytes | None) -> dict[str, Any] | None:
    try:
        return PROBE_MINUTE.decode(value or b"")
    except RecordDecodeError:
        return None


@pytest.mark.parametrize("seed", range(3))
def test_plain_records_are_decoded_as_one_by_one_and_damage_is_left_to_the_decoder(seed: int) -> None:
    sent = values(3000, Random(seed))
    plain = decode_plain(pa.array(sent, pa.binary()), PROBE_MINUTE)
    decoded = dict(zip(plain.rows.tolist(), to_records(pa.table(plain.columns)), strict=True))
    of_all = {position: record for position, value in enumerate(sent) if (record := decode(value))}
    assert decoded.items() <= of_all.items()
    assert all(
        position in decoded
        for position, record in of_all.items()
        if PROBE_MINUTE.encode(record) == sent[position] and is_ascii(record)
    )


def is_ascii(record: dict[str, Any]) -> bool:
    return str(record).isascii()


@pytest.mark.parametrize("seed", range(3))
def test_records_that_columns_clear_break_no_rule(seed: int) -> None:
    sent = values(3000, Random(seed))
    plain = decode_plain(pa.array(sent, pa.binary()), PROBE_MINUTE)
    table = pa.table(plain.columns)
    cleared = RULES.are_surely_valid(table)
    breaches = [RULES.judge(record) for record in to_records(table)]
    assert all(breach is None for breach, is_clear in zip(breaches, cleared, strict=True) if is_clear)
    assert 0.3 < sum(cleared) / len(cleared) < 1
    assert {breach[0] for breach in breaches if breach} <= set(QUARANTINE_REASONS)
    for position, breach in zip(plain.rows.tolist(), breaches, strict=True):
        if (wanted := fate(sent[position])) is not Fate.EITHER:
            assert (breach is None) == (wanted is Fate.TAKEN)


def test_what_is_unlikely_is_accepted_where_a_person_accepts_it() -> None:
    record = decode(next(value for value in values(50, Random(1)) if decode(value))) or {}
    record |= {"duplicated": 5000}
    assert RULES.judge(record) == ("implausible", "duplicated: 5000, at most 2000")
    assert replace(RULES, accepts_unlikely=True).judge(record) is None


def test_expired_days_are_refused() -> None:
    record = decode(next(value for value in values(50, Random(1)) if decode(value))) or {}
    limit = record["minute"] + timedelta(days=1)
    breach = replace(RULES, kept_from=limit).judge(record)
    assert breach == ("expired", f"{record['minute']:%Y-%m-%d %H:%M:%S}")


def to_records(table: pa.Table) -> list[dict[str, Any]]:
    schema = arrow_schema(PROBE_MINUTES)
    table = table.cast(pa.schema([schema.field(name) for name in table.column_names]))
    return [
        {name: dict(value) if name.endswith("_failures") else value for name, value in row.items()}
        for row in table.to_pylist()
    ]
