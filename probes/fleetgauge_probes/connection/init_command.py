"""What `fleetgauge init` does: write a fleet file from options or from a person's answers."""

import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from fleetgauge_core.fleet import Cluster, Fleet
from fleetgauge_core.runtime.cli import InputError, print_json
from fleetgauge_core.runtime.console import console
from fleetgauge_probes.connection.draft import (
    SCHEMA_FILE,
    FleetDraft,
    describe_field,
    find_validation_error,
    render_fleet_file,
)

_SUGGESTED_BOOTSTRAP = "localhost:9092"
_DEFAULT_LAKE: str = Fleet.model_fields["lake"].default


@dataclass(frozen=True, slots=True)
class _Question:
    """A value that an option gives or a person is asked for.

    ``to_document`` puts a value into a fleet document at its place, for validation. ``suggestion`` is
    offered to a person, ``default`` is used without a terminal.
    """

    option: str
    description: str
    to_document: Callable[[str], dict[str, Any]]
    suggestion: str | None = None
    default: str | None = None


def write_fleet_file(
    output: Path,
    ids: tuple[str, ...],
    bootstraps: tuple[str, ...],
    telemetry: str | None,
    lake: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Write a fleet file with the values of the options, or in a terminal of a person's answers.

    Raises: InputError when a value is missing or invalid, or the file exists or cannot be written.
    """
    if output.exists() and not force:
        raise InputError(
            f"{output} already exists: overwrite it with --force, or set another path with --output"
        )
    draft = _collect_draft(ids, bootstraps, telemetry, lake)
    text = render_fleet_file(draft, output.name, (output.parent / SCHEMA_FILE).exists())
    try:
        with output.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise InputError(f"{output}: {error.strerror}; set another path with --output") from error
    name = shlex.quote(str(output))
    next_commands = [f"fleetgauge validate {name} --connect", f"fleetgauge probe --config {name}"]
    console.print(f"wrote {output}; next:", markup=False, soft_wrap=True)
    for command in next_commands:
        console.print(f"  {command}", markup=False, soft_wrap=True)
    if as_json:
        print_json({"config": str(output), "next": next_commands})


def _collect_draft(
    ids: Sequence[str], bootstraps: Sequence[str], telemetry: str | None, lake: str | None
) -> FleetDraft:
    clusters = _collect_clusters(ids, bootstraps)
    first_bootstrap = clusters[0]["bootstrap"]
    document: dict[str, Any] = {"clusters": clusters}
    telemetry_question = _Question(
        "--telemetry",
        describe_field(Fleet, "telemetry"),
        lambda value: document | {"telemetry": {"bootstrap": value}},
        suggestion=first_bootstrap,
        default=first_bootstrap,
    )
    lake_question = _Question(
        "--lake",
        describe_field(Fleet, "lake"),
        lambda value: document | {"lake": value},
        suggestion=_DEFAULT_LAKE,
        default=_DEFAULT_LAKE,
    )
    return FleetDraft(
        clusters, _resolve_value(telemetry, telemetry_question), _resolve_value(lake, lake_question)
    )


def _collect_clusters(ids: Sequence[str], bootstraps: Sequence[str]) -> list[dict[str, str]]:
    """Return the clusters of the options, or without any as many as a person enters."""
    if len(bootstraps) > len(ids):
        raise InputError("more --bootstrap than --cluster options: give one of each for every cluster")
    clusters = [_collect_cluster([], _get_value(ids, 0), _get_value(bootstraps, 0))]
    while len(clusters) < len(ids) or (not ids and click.confirm("Another cluster?", err=True)):
        position = len(clusters)
        clusters.append(
            _collect_cluster(clusters, _get_value(ids, position), _get_value(bootstraps, position))
        )
    return clusters


def _collect_cluster(
    previous: Sequence[dict[str, str]], cluster_id: str | None, bootstrap: str | None
) -> dict[str, str]:
    """Return a cluster whose id differs from those of the previous clusters."""

    def to_document(**values: str) -> dict[str, Any]:
        return {"clusters": [*previous, {"id": "any", "bootstrap": _SUGGESTED_BOOTSTRAP} | values]}

    id_question = _Question("--cluster", describe_field(Cluster, "id"), lambda value: to_document(id=value))
    valid_id = _resolve_value(cluster_id, id_question)
    bootstrap_question = _Question(
        "--bootstrap",
        describe_field(Cluster, "bootstrap"),
        lambda value: to_document(id=valid_id, bootstrap=value),
        suggestion=_SUGGESTED_BOOTSTRAP,
    )
    return {"id": valid_id, "bootstrap": _resolve_value(bootstrap, bootstrap_question)}


def _get_value(values: Sequence[str], position: int) -> str | None:
    return values[position] if position < len(values) else None


def _resolve_value(option_value: str | None, question: _Question) -> str:
    """Return the option's value, else a person's answer, else the default; all are validated.

    Raises: InputError when the option's value is not valid, or is missing without a terminal or default.
    """
    if option_value is not None:
        if problem := find_validation_error(question.to_document(option_value)):
            raise InputError(f"{question.option} {option_value!r}: {problem}")
        return option_value
    if sys.stdin.isatty():
        return _ask_person(question)
    if question.default is None:
        raise InputError(f"{question.option} is missing: give it, as there is no terminal to ask in")
    return question.default


def _ask_person(question: _Question) -> str:
    """Ask until the answer is valid."""

    def validate_answer(value: str) -> str:
        if problem := find_validation_error(question.to_document(value)):
            raise click.UsageError(problem)
        return value

    console.print(question.description, style="dim", markup=False)
    name = question.option.removeprefix("--")
    answer: str = click.prompt(name, default=question.suggestion, value_proc=validate_answer, err=True)
    return answer
