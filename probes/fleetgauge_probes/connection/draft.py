"""Rendering of a new fleet file with comments, which are the field descriptions of the fleet model."""

import json
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from fleetgauge_core.fleet import Cluster, Fleet
from fleetgauge_core.fleet.load import describe_value_error

SCHEMA_FILE = "fleet.schema.json"
_OPTIONAL_KEYS = ("tier", "cloud", "region", "labels")
_WIDTH = 100


@dataclass(frozen=True, slots=True)
class FleetDraft:
    """The required values of a fleet file; each cluster has an ``id`` and a ``bootstrap``."""

    clusters: Sequence[Mapping[str, str]]
    telemetry: str
    lake: str


def find_validation_error(document: Mapping[str, Any]) -> str | None:
    """Return why the fleet model rejects a document, by its first invalid value; None if it is valid."""
    try:
        Fleet.model_validate(document)
    except ValidationError as error:
        return describe_value_error(error.errors(include_url=False, include_input=False)[0])
    return None


def describe_field(model: type[BaseModel], key: str) -> str:
    """Return the description of a model's field."""
    return model.model_fields[key].description or ""


def render_fleet_file(draft: FleetDraft, name: str, has_schema: bool) -> str:
    """Return the text of the fleet file called ``name``.

    If ``has_schema``, its first line refers an editor to the JSON Schema file beside it.
    """
    return "\n".join(
        [
            *([f"# yaml-language-server: $schema={SCHEMA_FILE}"] if has_schema else []),
            f"# The fleet that Fleetgauge measures. To check it: fleetgauge validate {name} --connect",
            "",
            *_format_comment(describe_field(Fleet, "lake")),
            f"lake: {_format_value(draft.lake)}",
            "",
            *_format_comment(
                f"{describe_field(Fleet, 'telemetry')} Preferably a cluster that is not measured itself."
            ),
            "telemetry:",
            f"  bootstrap: {_format_value(draft.telemetry)}",
            "",
            *_format_comment(describe_field(Fleet, "clusters")),
            "clusters:",
            *_render_clusters(draft.clusters),
            "",
            *_format_comment(describe_field(Fleet, "notifiers")),
            "# notifiers:",
            '#   - {kind: webhook, url: "https://hooks.example/sre"}',
            "",
        ]
    )


def _render_clusters(clusters: Sequence[Mapping[str, str]]) -> Iterable[str]:
    """Yield the lines of the clusters; the first cluster shows the optional keys in comments."""
    for number, cluster in enumerate(clusters):
        yield f"  - id: {_format_value(cluster['id'])}"
        yield f"    bootstrap: {_format_value(cluster['bootstrap'])}"
        for key in _OPTIONAL_KEYS if number == 0 else ():
            field = Cluster.model_fields[key]
            yield from _format_comment(field.description or "", "    ")
            yield f"    # {key}: {_format_value((field.examples or [None])[0])}"


def _format_comment(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# ")


def _format_value(value: Any) -> str:
    """Format a value as JSON, which is valid YAML for any value."""
    return json.dumps(value, ensure_ascii=False)
