"""A case of one partition as a file, judged without any cluster.

    {"position": 6,
     "active": {"A": [[1, 3]], "B": [[3, 5]]},
     "passive": {"A": [[1, 1]], "B": [[3, 7]]},
     "passive_log": [0, 8],
     "watermarks": {"A": [[4, 8]]}}

Lists are in the order in which they were told. A source offset that goes back is a mirror that began again;
a destination offset that goes back, a log made anew, from which on what was told before is not used.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fleetgauge_operations.recovery.offsets.checkpoint import (
    Checkpoint,
    Log,
    Origin,
    Route,
)
from fleetgauge_operations.recovery.offsets.mapping import (
    Answer,
    Constraint,
    Rule,
    best,
    mapped,
)
from fleetgauge_operations.recovery.offsets.offset_sync_store import History
from fleetgauge_operations.recovery.offsets.replication_runs import Change

_LARGEST = 2**63 - 1
_SIDES = ("active", "passive")
_KEYS = ("position", *_SIDES, "passive_log", "watermarks")


class CaseError(ValueError):
    """A case that cannot be read, in one line: where, what, and how to mend it."""


@dataclass(frozen=True, slots=True)
class Case:
    """One partition of a merged topic, as ``mapped`` takes it."""

    position: int
    active: Mapping[str, History]
    passive: Mapping[str, History]
    log: Log
    ignored: tuple[str, ...] = ()
    """Keys that say nothing here."""

    def answer(self, rule: Rule | None = None) -> Answer:
        """By that rule; without one, the best that the case allows."""
        if rule is None:
            return best(self.position, self.active, self.passive, self.log)
        return mapped(self.position, self.active, self.passive, self.log, rule)


def parsed(text: str) -> Case:
    """Raises CaseError."""
    document = _object(_json(text), "the case")
    for key in _KEYS[:-1]:
        if key not in document:
            raise CaseError(f"{key} is missing: a case has {', '.join(_KEYS[:-1])}")
    start, end = _pair(document["passive_log"], "passive_log")
    if end < start:
        raise CaseError(f"passive_log ends at {end}, before its start {start}: give [start, end]")
    marks = _watermarks(document.get("watermarks", {}))
    active, passive = (dict(_histories(side, document[side], marks[side])) for side in _SIDES)
    ignored = tuple(key for key in document if key not in _KEYS)
    return Case(_offset(document["position"], "position"), active, passive, Log(start, end), ignored)


def document(answer: Answer) -> dict[str, Any]:
    """What scripts see of an answer."""
    return {
        "resume": answer.resume,
        "rule": answer.rule,
        "per_source": {source: _of_source(one) for source, one in answer.per_source.items()},
        "unbounded": answer.unbounded,
        "possible_loss": answer.possible_loss,
        "early_at_most": answer.early_at_most,
    }


def _of_source(one: Constraint) -> dict[str, Any]:
    active, passive = (list(at[:2]) if at else None for at in (one.active, one.passive))
    return {"resume": one.resume, "why": one.why, "active": active, "passive": passive}


def printable(name: str) -> str:
    """What stands in a file, in one line."""
    return name if name.isprintable() else json.dumps(name)


def _json(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except CaseError:
        raise
    except RecursionError as error:
        raise CaseError("brackets within brackets without end: a case is three deep") from error
    except json.JSONDecodeError as error:
        raise CaseError(f"line {error.lineno} is not JSON: {error.msg}") from error
    except ValueError as error:
        raise CaseError(f"an offset of more than 64 bits: {error}") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise CaseError(f"{printable(twice)} is there twice: leave one")
    return found


def _no_number(word: str) -> Any:
    raise CaseError(f"{word} is not an offset: give a whole number")


def _watermarks(value: Any) -> dict[str, dict[str, Any]]:
    """By side. Plain lists are of the passive one, where an idle source holds everything back."""
    given = _object(value, "watermarks")
    if given and set(given) <= set(_SIDES) and all(isinstance(one, dict) for one in given.values()):
        return {side: _object(given.get(side, {}), f"watermarks.{side}") for side in _SIDES}
    return {"active": {}, "passive": given}


def _histories(side: str, value: Any, marks: Mapping[str, Any]) -> Iterator[tuple[str, History]]:
    checkpoints = _object(value, side)
    for source in {**checkpoints, **marks}:
        where = f"{side}.{printable(source)}"
        history = History(Route(source, side, "", 0), ids=None)
        for row in _rows(checkpoints.get(source, []), where, Origin.SYNC):
            history.append(row)
        for row in _rows(marks.get(source, []), f"watermarks of {where}", Origin.IDLE_WATERMARK):
            if history.append(row) is Change.MADE_ANEW:
                raise CaseError(
                    f"watermarks of {where}: [{row.src_offset}, {row.dst_offset}] goes back, or a checkpoint "
                    "says otherwise: from the first on nothing may lie before the second"
                )
        yield source, history


def _rows(value: Any, where: str, origin: Origin) -> Iterator[Checkpoint]:
    if not isinstance(value, list):
        raise CaseError(f"{where} is {_shown(value)}: give a list of [source offset, destination offset]")
    for number, one in enumerate(value):
        yield Checkpoint(*_pair(one, f"{where}[{number}]"), origin=origin)


def _pair(value: Any, where: str) -> tuple[int, int]:
    if not isinstance(value, list) or len(value) != 2:
        raise CaseError(f"{where} is {_shown(value)}: give two offsets, as [1, 3]")
    return _offset(value[0], where), _offset(value[1], where)


def _offset(value: Any, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _LARGEST:
        raise CaseError(f"{where} has {_shown(value)}: give an offset, a whole number from 0 to {_LARGEST}")
    return value


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise CaseError(f"{where} is {_shown(value)}: give an object, as {{...}}")
    return value


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
