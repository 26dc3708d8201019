"""Types of scalar values in fleet.yaml that are checked by a pattern."""

import ipaddress
import re
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, Field

URL_PATTERN = r"^https?://"
_IDENTIFIER = r"^[A-Za-z0-9._-]{1,128}$"
_ADDRESS = r"([^\s,:/\[\]]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?"
_BOOTSTRAP = rf"^{_ADDRESS}(\s*,\s*{_ADDRESS})*$"
#: RFC 1123, and the underscore that container networks permit.
_HOST_LABEL = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
_MAX_HOST_LENGTH = 253
_MAX_PORT = 65535
#: Only in the JSON Schema: the model accepts more notations of a time than an editor can check.
_TIMESTAMP = r"^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:\d\d)$"

#: What error messages and the documentation show instead of a pattern.
DESCRIPTION_BY_PATTERN = {
    _IDENTIFIER: "1 to 128 letters (A-Z, a-z), digits, dots, underscores and dashes",
    _BOOTSTRAP: "HOST:PORT, or several separated by commas",
    URL_PATTERN: "http://... or https://...",
}


def _check_bootstrap(bootstrap: str) -> str:
    for address in re.split(r"\s*,\s*", bootstrap):
        host, colon, port = address.rpartition(":")
        if not colon or address.endswith("]"):
            host, port = address, ""
        if port and not 1 <= int(port) <= _MAX_PORT:
            raise ValueError(f"{address}: a port is a number from 1 to {_MAX_PORT}")
        if not _is_host(host):
            raise ValueError(f"{address}: {host} is neither a host name nor an IP address")
    return bootstrap


def _is_host(host: str) -> bool:
    """Return whether it is a name that DNS can hold, an IPv4 address, or an IPv6 address in brackets."""
    try:
        if host.startswith("["):
            return bool(ipaddress.IPv6Address(host[1:-1]))
        if re.fullmatch(r"[0-9.]+", host):
            return bool(ipaddress.IPv4Address(host))
    except ValueError:
        return False
    labels = host.removesuffix(".").split(".")
    return len(host) <= _MAX_HOST_LENGTH and all(_HOST_LABEL.fullmatch(label) for label in labels)


Identifier = Annotated[str, Field(pattern=_IDENTIFIER)]
Bootstrap = Annotated[str, Field(pattern=_BOOTSTRAP), AfterValidator(_check_bootstrap)]
BrokerId = Annotated[int, Field(ge=0)]
ZonedTimestamp = Annotated[AwareDatetime, Field(json_schema_extra={"pattern": _TIMESTAMP})]
ExporterUrl = Annotated[str, Field(pattern=URL_PATTERN)]
