"""What a raw value becomes: a valid record, or a refused value with its reason."""

from dataclasses import replace
from datetime import timedelta

import pyarrow as pa
import pytest

from fleetgauge_core.contract import PROBE_MINUTE
from fleetgauge_core.contract.single_object import MAX_RECORD_BYTES
from fleetgauge_pipelines.transforms.contract_rules import ContractRules
from fleetgauge_pipelines.transforms.raw_records import CheckedRecords, check_raw_records
from tests.probe_minutes import CLIENT

RULES = ContractRules({CLIENT.cluster_id}, CLIENT.minute + timedelta(minutes=1), None, None)
#: A map with one entry ("ACK_LATE": 2), and an entry of it, as Avro writes them.
ENTRY = b"\x10ACK_LATE"
MAP = b"\x02" + ENTRY + b"\x04\x00"
VALID = replace(CLIENT, attempted=100, produce_failures={"ACK_LATE": 2}).encode()


def check(*values: bytes | None, hints: tuple[str | None, ...] = ()) -> CheckedRecords:
    raw = pa.table(
        {
            "value": pa.array(values, pa.binary()),
            "source": [f"topic/0/{number}" for number in range(len(values))],
            "position": pa.array(range(len(values)), pa.int64()),
            "hint": pa.array(hints or [None] * len(values), pa.string()),
        }
    )
    return check_raw_records(raw, RULES)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        pytest.param(None, "not_decodable", id="no value"),
        pytest.param(b"", "not_decodable", id="empty"),
        pytest.param(PROBE_MINUTE.header, "not_decodable", id="header alone"),
        pytest.param(VALID[:-1], "not_decodable", id="cut"),
        pytest.param(VALID + b"\x00", "trailing_bytes", id="too long"),
        pytest.param(b"x" * (MAX_RECORD_BYTES + 1), "oversize", id="oversize"),
        pytest.param(
            VALID.replace(MAP, b"\x04" + ENTRY + b"\x09" + ENTRY + b"\x04\x00"),
            "trailing_bytes",
            id="a code that is given twice",
        ),
        pytest.param(
            VALID.replace(MAP, b"\x02" + ENTRY + b"\x84\x00\x00"), "trailing_bytes", id="a padded number"
        ),
    ],
)
def test_a_value_that_is_no_record_is_refused_and_those_beside_it_are_not(
    value: bytes | None, reason: str
) -> None:
    assert MAP in VALID
    checked = check(VALID, value, VALID)
    assert checked.valid["position"].to_pylist() == [0, 2]
    assert checked.valid["produce_failures"].to_pylist() == [[("ACK_LATE", 2)]] * 2
    (refused,) = checked.refused.to_pylist()
    assert (refused["source"], refused["value"], refused["reason"]) == ("topic/0/1", value, reason)


def test_a_hint_is_the_reason_of_a_value_that_a_file_made_unreadable() -> None:
    checked = check(VALID, VALID, hints=("missing_field", None))
    assert checked.valid["position"].to_pylist() == [1]
    assert checked.refused["reason"].to_pylist() == ["missing_field"]


def test_no_value_is_no_record() -> None:
    checked = check()
    assert (checked.valid.num_rows, checked.refused.num_rows) == (0, 0)


def test_a_code_of_a_negative_length_is_refused() -> None:
    checked = check(VALID.replace(ENTRY, b"\x0f" + ENTRY[1:]), VALID)
    assert checked.valid["position"].to_pylist() == [1]
    assert checked.refused["reason"].to_pylist() == ["not_decodable"]
