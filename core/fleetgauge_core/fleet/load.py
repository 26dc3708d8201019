"""Read fleet.yaml (YAML or JSON); each refusal names the key and the mend."""

from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails
from yaml.composer import ComposerError

from fleetgauge_core.fleet.model import WORDS_BY_PATTERN, Fleet


class FleetFileError(ValueError):
    """The file cannot be used; its text is one line for a person."""


class _OneOfEachKey(yaml.SafeLoader):
    """PyYAML lets the last of two equal keys win without a word; YAML forbids them."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        # Composed, not yet constructed: merge keys are still what they are in the file.
        node = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise ComposerError(None, None, f"{key.value!r} is given twice", key.start_mark)
                seen.add(key.value)
        return node


def load(path: Path) -> Fleet:
    """The fleet that the file describes. A relative lake is relative to the file."""
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), _OneOfEachKey)  # noqa: S506 (a SafeLoader)
    except OSError as error:
        raise FleetFileError(f"{path}: {error.strerror or error}; name another with --config") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise FleetFileError(f"{path}: not YAML: {_fault(error)}") from error
    if not isinstance(document, dict):
        raise FleetFileError(f"{path}: expected keys such as 'clusters:', found {type(document).__name__}")
    try:
        fleet = Fleet.model_validate(document, context={"folder": path.parent.resolve()})
    except ValidationError as error:
        raise FleetFileError(f"{path}: {'; '.join(_lines(error))}") from error
    if "://" in fleet.lake:
        return fleet
    return fleet.model_copy(update={"lake": str((path.parent / fleet.lake).resolve())})


def _fault(error: Exception) -> str:
    """What is wrong and in which line; never the line itself, which may hold a secret."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        return f"line {error.problem_mark.line + 1}: {error.problem}"
    return "nested too deeply" if isinstance(error, RecursionError) else "a value that cannot be read"


def _lines(error: ValidationError) -> list[str]:
    """One `key: reason` per fault; input values stay out, they may be secrets."""
    faults = error.errors(include_url=False, include_input=False)
    return [f"{_key(fault['loc'])}: {reason(fault)}" for fault in faults if not _follows(fault, faults)]


def reason(fault: ErrorDetails) -> str:
    """Why a value is refused, without the value."""
    if fault["type"] == "too_short":
        return "wanted: at least one"
    words = WORDS_BY_PATTERN.get(fault.get("ctx", {}).get("pattern", ""))
    return f"wanted: {words}" if words else fault["msg"].removeprefix("Value error, ")


def _follows(fault: ErrorDetails, faults: list[ErrorDetails]) -> bool:
    """A list whose only entry is refused is called too short as well, which helps nobody."""
    depth = len(fault["loc"])
    return fault["type"] == "too_short" and any(
        len(other["loc"]) > depth and other["loc"][:depth] == fault["loc"] for other in faults
    )


def _key(location: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in location) or "file"
