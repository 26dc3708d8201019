"""A new fleet.yaml: answers in, a commented file out. What it says of a key is the model's description."""

import json
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from fleetgauge_core.fleet.load import reason
from fleetgauge_core.fleet.model import Cluster, Fleet

SCHEMA_FILE = "fleet.schema.json"
_OPTIONAL = ("tier", "cloud", "region", "labels")
_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Draft:
    """What must be known of a fleet; ``clusters`` have an id and a bootstrap each."""

    clusters: Sequence[Mapping[str, str]]
    telemetry: str
    lake: str


def refusal(document: Mapping[str, Any]) -> str | None:
    """Why the model refuses the first wrong value of a document; None if it takes it."""
    try:
        Fleet.model_validate(document)
    except ValidationError as error:
        return reason(error.errors(include_url=False, include_input=False)[0])
    return None


def meaning(model: type[BaseModel], key: str) -> str:
    return model.model_fields[key].description or ""


def render(draft: Draft, name: str, for_editor: bool) -> str:
    """The text of the file of that name. ``for_editor``: with a first line that leads to the schema."""
    return "\n".join(
        [
            *([f"# yaml-language-server: $schema={SCHEMA_FILE}"] if for_editor else []),
            f"# What Fleetgauge measures. Check it: fleetgauge validate {name} --connect",
            "",
            *_comment(meaning(Fleet, "lake")),
            f"lake: {_text(draft.lake)}",
            "",
            *_comment(f"{meaning(Fleet, 'telemetry')} Best one that is not measured itself."),
            "telemetry:",
            f"  bootstrap: {_text(draft.telemetry)}",
            "",
            *_comment(meaning(Fleet, "clusters")),
            "clusters:",
            *_clusters(draft.clusters),
            "",
            *_comment(meaning(Fleet, "notifiers")),
            "# notifiers:",
            '#   - {kind: webhook, url: "https://hooks.example/sre"}',
            "",
        ]
    )


def _clusters(clusters: Sequence[Mapping[str, str]]) -> Iterable[str]:
    """The first one shows what else may be said of a cluster."""
    for number, cluster in enumerate(clusters):
        yield f"  - id: {_text(cluster['id'])}"
        yield f"    bootstrap: {_text(cluster['bootstrap'])}"
        for key in _OPTIONAL if number == 0 else ():
            field = Cluster.model_fields[key]
            yield from _comment(field.description or "", "    ")
            yield f"    # {key}: {_text((field.examples or [None])[0])}"


def _comment(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# ")


def _text(value: Any) -> str:
    """JSON is YAML, whatever the value looks like."""
    return json.dumps(value, ensure_ascii=False)
