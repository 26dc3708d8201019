"""The key paths of a type and of its value as JSON are the same."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tests.promises.key_paths import paths_of_type, paths_of_value
from tests.promises.source import literal_keys
from tests.promises.specimens import specimen


@dataclass(frozen=True)
class Broker:
    broker_id: int
    failures: Mapping[str, int]


@dataclass(frozen=True)
class Cluster:
    name: str | None
    brokers: tuple[Broker, ...]
    worst: Broker | None = None


BROKER = {"broker_id", "failures", "failures.*"}
CLUSTER = {
    "name",
    "brokers",
    "worst",
    *(f"brokers[].{path}" for path in BROKER),
    *(f"worst.{path}" for path in BROKER),
}


def test_a_type_has_the_paths_of_all_its_fields() -> None:
    assert paths_of_type(Cluster) == CLUSTER


def test_a_specimen_has_the_paths_of_its_type() -> None:
    assert paths_of_value(asdict(specimen(Cluster))) == CLUSTER


def test_keys_that_are_data_are_replaced_by_a_star() -> None:
    value = [{"codes": {"TIMED_OUT": 1, "REFUSED": 2}}]
    assert paths_of_value(value, {"[].codes"}) == {"[].codes", "[].codes.*"}


def _build_literals(on: bool) -> Any:
    return [{"on": on, "of": {"id": 1}} | ({"why": "off"} if not on else {})]


def test_the_keys_of_dict_literals_are_collected_from_the_source() -> None:
    assert literal_keys(_build_literals) == {"on", "of", "of.id", "why"}
