"""Read fleet.yaml (YAML or JSON); each refusal names the key and the mend."""

from pathlib import Path

import yaml
from pydantic import ValidationError

from fleetgauge_probes.fleet.model import Fleet


class FleetFileError(ValueError):
    """The file cannot be used; its text is one line for a person."""


def load(path: Path) -> Fleet:
    """The fleet that the file describes. A relative lake is relative to the file."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FleetFileError(f"{path}: {error.strerror or error}; name another with --config") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise FleetFileError(f"{path}: not YAML: {_fault(error)}") from error
    if not isinstance(document, dict):
        raise FleetFileError(f"{path}: expected keys such as 'clusters:', found {type(document).__name__}")
    try:
        fleet = Fleet.model_validate(document)
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
    return [f"{_key(fault['loc'])}: {fault['msg'].removeprefix('Value error, ')}" for fault in faults]


def _key(location: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in location) or "file"
