"""Read a mapping case from a JSON file, to translate the position of one partition without any cluster.

    {"position": 6,
     "active": {"A": [[1, 3]], "B": [[3, 5]]},
     "passive": {"A": [[1, 1]], "B": [[3, 7]]},
     "passive_log": [0, 8],
     "watermarks": {"A": [[4, 8]]}}

Lists are in the order of observation. A source offset that goes back means that the mirror restarted; a
destination offset that goes back means that the topic was recreated, which invalidates all earlier pairs.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fleetgauge_operations.recovery.offsets.checkpoint import (
    Checkpoint,
    CheckpointOrigin,
    LogRange,
    PartitionRoute,
)
from fleetgauge_operations.recovery.offsets.mapping import (
    MappingResult,
    SourceConstraint,
    map_position,
    map_with_best_rule,
)
from fleetgauge_operations.recovery.offsets.mapping_rule import MappingRule
from fleetgauge_operations.recovery.offsets.offset_sync_store import OffsetHistory
from fleetgauge_operations.recovery.offsets.replication_runs import HistoryUpdate

_LARGEST_OFFSET = 2**63 - 1
_SIDES = ("active", "passive")
_KEYS = ("position", *_SIDES, "passive_log", "watermarks")


class MappingCaseError(ValueError):
    """A mapping case cannot be read; one line that names the place, the problem and the fix."""


@dataclass(frozen=True, slots=True)
class MappingCase:
    """The arguments of ``map_position`` for one partition of a merged topic."""

    position: int
    active: Mapping[str, OffsetHistory]
    passive: Mapping[str, OffsetHistory]
    log: LogRange
    ignored: tuple[str, ...] = ()
    """Unknown keys of the document."""

    def map_position(self, rule: MappingRule | None = None) -> MappingResult:
        """Translate the position by that rule, or by the best one."""
        if rule is None:
            return map_with_best_rule(self.position, self.active, self.passive, self.log)
        return map_position(self.position, self.active, self.passive, self.log, rule)


def parse_case(text: str) -> MappingCase:
    """Parse a mapping case. Raises MappingCaseError."""
    document = _require_object(_parse_json(text), "the case")
    for key in _KEYS[:-1]:
        if key not in document:
            raise MappingCaseError(f"{key} is missing: a case has {', '.join(_KEYS[:-1])}")
    start, end = _parse_pair(document["passive_log"], "passive_log")
    if end < start:
        raise MappingCaseError(f"passive_log ends at {end}, before its start {start}: give [start, end]")
    watermarks = _parse_watermarks(document.get("watermarks", {}))
    active, passive = (dict(_parse_histories(side, document[side], watermarks[side])) for side in _SIDES)
    ignored = tuple(key for key in document if key not in _KEYS)
    position = _parse_offset(document["position"], "position")
    return MappingCase(position, active, passive, LogRange(start, end), ignored)


def map_document(result: MappingResult) -> dict[str, Any]:
    """Return a mapping result as a JSON document."""
    return {
        "resume": result.resume,
        "rule": result.rule,
        "per_source": {
            source: _constraint_document(constraint) for source, constraint in result.per_source.items()
        },
        "unbounded": result.is_unbounded,
        "possible_loss": result.possible_loss,
        "early_at_most": result.early_at_most,
    }


def _constraint_document(constraint: SourceConstraint) -> dict[str, Any]:
    active, passive = (
        list(checkpoint[:2]) if checkpoint else None for checkpoint in (constraint.active, constraint.passive)
    )
    return {"resume": constraint.resume, "why": constraint.basis, "active": active, "passive": passive}


def escape_unprintable(name: str) -> str:
    """Return a name as it is, or JSON-quoted if it contains characters that would break a line of output."""
    return name if name.isprintable() else json.dumps(name)


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_reject_duplicate_keys, parse_constant=_reject_constant)
    except MappingCaseError:
        raise
    except RecursionError as error:
        raise MappingCaseError("JSON is nested too deeply: a case has three levels") from error
    except json.JSONDecodeError as error:
        raise MappingCaseError(f"line {error.lineno} is not valid JSON: {error.msg}") from error
    except ValueError as error:
        raise MappingCaseError(f"an offset has more than 64 bits: {error}") from error


def _reject_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        names = [name for name, _ in pairs]
        duplicate = next(name for name in names if names.count(name) > 1)
        raise MappingCaseError(f"{escape_unprintable(duplicate)} is given twice: remove one")
    return document


def _reject_constant(constant: str) -> Any:
    raise MappingCaseError(f"{constant} is not an offset: give a whole number")


def _parse_watermarks(value: Any) -> dict[str, dict[str, Any]]:
    """Return watermarks by side. Without sides they belong to passive, which an idle source holds back."""
    document = _require_object(value, "watermarks")
    has_sides = document and set(document) <= set(_SIDES)
    if has_sides and all(isinstance(by_source, dict) for by_source in document.values()):
        return {side: _require_object(document.get(side, {}), f"watermarks.{side}") for side in _SIDES}
    return {"active": {}, "passive": document}


def _parse_histories(
    side: str, value: Any, watermarks: Mapping[str, Any]
) -> Iterator[tuple[str, OffsetHistory]]:
    checkpoints = _require_object(value, side)
    for source in {**checkpoints, **watermarks}:
        where = f"{side}.{escape_unprintable(source)}"
        history = OffsetHistory(PartitionRoute(source, side, "", 0), ids=None)
        for row in _parse_rows(checkpoints.get(source, []), where, CheckpointOrigin.SYNC):
            history.append(row)
        for row in _parse_rows(
            watermarks.get(source, []), f"watermarks of {where}", CheckpointOrigin.IDLE_WATERMARK
        ):
            if history.append(row) is HistoryUpdate.INVALIDATED:
                raise MappingCaseError(
                    f"watermarks of {where}: [{row.src_offset}, {row.dst_offset}] goes back or contradicts a "
                    "checkpoint: no record from the first offset on may lie before the second offset"
                )
        yield source, history


def _parse_rows(value: Any, where: str, origin: CheckpointOrigin) -> Iterator[Checkpoint]:
    if not isinstance(value, list):
        raise MappingCaseError(
            f"{where} is {_abbreviate(value)}: give a list of [source offset, destination offset]"
        )
    for index, pair in enumerate(value):
        yield Checkpoint(*_parse_pair(pair, f"{where}[{index}]"), origin=origin)


def _parse_pair(value: Any, where: str) -> tuple[int, int]:
    if not isinstance(value, list) or len(value) != 2:
        raise MappingCaseError(f"{where} is {_abbreviate(value)}: give two offsets, as [1, 3]")
    return _parse_offset(value[0], where), _parse_offset(value[1], where)


def _parse_offset(value: Any, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _LARGEST_OFFSET:
        raise MappingCaseError(
            f"{where} has {_abbreviate(value)}: give an offset, a whole number from 0 to {_LARGEST_OFFSET}"
        )
    return value


def _require_object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise MappingCaseError(f"{where} is {_abbreviate(value)}: give an object, as {{...}}")
    return value


def _abbreviate(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
