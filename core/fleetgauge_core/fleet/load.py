"""Read fleet.yaml (YAML or JSON) and report errors by key."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails
from yaml.composer import ComposerError

from fleetgauge_core.errors import OperationalError
from fleetgauge_core.fleet.cluster import Cluster
from fleetgauge_core.fleet.field_types import DESCRIPTION_BY_PATTERN
from fleetgauge_core.fleet.model import Fleet
from fleetgauge_core.fleet.telemetry import Telemetry
from fleetgauge_core.runtime.home_folder import expand_home


class FleetFileError(OperationalError):
    """The fleet file cannot be used; the message is one line that names the file, the key and the problem."""


class _UniqueKeyLoader(yaml.SafeLoader):
    """A YAML loader that rejects duplicate keys, which YAML forbids but PyYAML accepts silently."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Return the node of a mapping; at this stage, merge keys (<<) are not yet expanded."""
        node = super().compose_mapping_node(anchor)
        keys: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in keys:
                    raise ComposerError(None, None, f"{key.value!r} is given twice", key.start_mark)
                keys.add(key.value)
        return node


def load_fleet(path: Path) -> Fleet:
    """Return the fleet that a file describes; a relative lake path is resolved against the file's folder.

    Raises: FleetFileError if the file cannot be read or is not a valid fleet file.
    """
    document = read_document(path)
    try:
        return validate_document(document, path)
    except ValidationError as error:
        raise FleetFileError(f"{path}: {'; '.join(describe_errors(error))}") from error


def read_document(path: Path) -> dict[Any, Any]:
    """Return the mapping that a fleet file holds, before its keys are checked. Raises: FleetFileError."""
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), _UniqueKeyLoader)  # noqa: S506 (a SafeLoader)
    except OSError as error:
        raise FleetFileError(
            f"{path}: {error.strerror or error}; choose another file with --config"
        ) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise FleetFileError(f"{path}: not YAML: {_describe_yaml_error(error)}") from error
    if not isinstance(document, dict):
        raise FleetFileError(f"{path}: expected keys such as 'clusters:', found {type(document).__name__}")
    return document


def validate_document(document: Mapping[Any, Any], path: Path) -> Fleet:
    """Return the fleet of a document that was read from ``path``. Raises: ValidationError."""
    fleet = Fleet.model_validate(document, context={"folder": path.parent.resolve()})
    if "://" in fleet.lake:
        return fleet
    try:
        lake = path.parent / expand_home(fleet.lake)
    except ValueError as error:
        raise FleetFileError(f"{path}: lake: {error}") from error
    return fleet.model_copy(update={"lake": str(lake.resolve())})


def require_telemetry(fleet: Fleet, path: Path) -> Telemetry:
    """Return the telemetry cluster of the fleet that was loaded from ``path``.

    Raises: FleetFileError if the fleet file names none.
    """
    if fleet.telemetry is None:
        raise FleetFileError(
            f"{path}: telemetry.bootstrap is missing: set it to the telemetry cluster's bootstrap servers"
        )
    return fleet.telemetry


def require_cluster(fleet: Fleet, path: Path, cluster_id: str) -> Cluster:
    """Return a cluster of the fleet that was loaded from ``path``.

    Raises: FleetFileError if the fleet file has no cluster of that ID; it names the first ten.
    """
    for cluster in fleet.clusters:
        if cluster.id == cluster_id:
            return cluster
    first_ids = ", ".join(cluster.id for cluster in fleet.clusters[:10])
    raise FleetFileError(f"{path}: no cluster {cluster_id} (known: {first_ids})")


def _describe_yaml_error(error: Exception) -> str:
    """Return the problem and its line number, but never the line itself, which may contain a secret."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        return f"line {error.problem_mark.line + 1}: {error.problem}"
    return "nested too deeply" if isinstance(error, RecursionError) else "a value that cannot be read"


def describe_errors(error: ValidationError) -> list[str]:
    """Return `key: problem` for each error; values are left out because they may be secrets."""
    errors = error.errors(include_url=False, include_input=False)
    return [describe_error(details) for details in errors if not is_consequence(details, errors)]


def describe_error(details: ErrorDetails) -> str:
    """Return `key: problem` for an error, without the value."""
    return f"{_key(details['loc'])}: {describe_value_error(details)}"


def describe_value_error(details: ErrorDetails) -> str:
    """Return why a value is invalid, without the value."""
    if details["type"] == "too_short":
        return "expected at least one entry"
    description = DESCRIPTION_BY_PATTERN.get(details.get("ctx", {}).get("pattern", ""))
    return f"expected {description}" if description else details["msg"].removeprefix("Value error, ")


def is_consequence(details: ErrorDetails, errors: list[ErrorDetails]) -> bool:
    """Return whether a list is reported as too short only because its entries are invalid."""
    depth = len(details["loc"])
    return details["type"] == "too_short" and any(
        len(error["loc"]) > depth and error["loc"][:depth] == details["loc"] for error in errors
    )


def _key(location: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in location) or "file"
