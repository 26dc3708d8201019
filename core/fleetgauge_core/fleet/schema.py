"""The JSON Schema of fleet.yaml, for editors."""

import json
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

from fleetgauge_core.fleet.model import Fleet


class _ForEditors(GenerateJsonSchema):
    """Without titles made from key names, which an editor would show above the description."""

    # What yaml-language-server reads in full; nothing here needs a newer one.
    schema_dialect = "http://json-schema.org/draft-07/schema#"

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 (pydantic's signature)
        return False

    def generate(self, schema: Any, mode: JsonSchemaMode = "validation") -> dict[str, Any]:
        return {"$schema": self.schema_dialect} | super().generate(schema, mode)


def schema_text() -> str:
    """What can be checked key by key; that ids differ and tiers exist is checked by ``load`` alone."""
    return json.dumps(Fleet.model_json_schema(schema_generator=_ForEditors), indent=2) + "\n"
