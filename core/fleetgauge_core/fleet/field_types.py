"""Types of scalar values in fleet.yaml that are checked by a pattern."""

from typing import Annotated

from pydantic import AwareDatetime, Field

URL_PATTERN = r"^https?://"
_IDENTIFIER = r"^[A-Za-z0-9._-]{1,128}$"
_ADDRESS = r"([^\s,:/\[\]]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?"
_BOOTSTRAP = rf"^{_ADDRESS}(\s*,\s*{_ADDRESS})*$"
#: Only in the JSON Schema: the model accepts more notations of a time than an editor can check.
_TIMESTAMP = r"^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:\d\d)$"

#: What error messages and the documentation show instead of a pattern.
DESCRIPTION_BY_PATTERN = {
    _IDENTIFIER: "1 to 128 letters (A-Z, a-z), digits, dots, underscores and dashes",
    _BOOTSTRAP: "HOST:PORT, or several separated by commas",
    URL_PATTERN: "http://... or https://...",
}

Identifier = Annotated[str, Field(pattern=_IDENTIFIER)]
Bootstrap = Annotated[str, Field(pattern=_BOOTSTRAP)]
ZonedTimestamp = Annotated[AwareDatetime, Field(json_schema_extra={"pattern": _TIMESTAMP})]
ExporterUrl = Annotated[str, Field(pattern=URL_PATTERN)]
